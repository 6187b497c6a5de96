"""From a table and a process to trees."""
