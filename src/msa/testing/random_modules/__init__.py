"""Random modules that planners must cope with."""
