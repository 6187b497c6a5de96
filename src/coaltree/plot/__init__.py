"""What leaves the library for people to look at."""
