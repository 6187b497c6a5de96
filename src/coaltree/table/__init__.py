"""Tables: from a user's frame, array or file to encoded columns."""
