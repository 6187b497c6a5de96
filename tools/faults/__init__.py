"""Faults for the campaign: hostile tables, objects, files and interruptions, each drawn from a seed."""
