"""Finds the plugins that the settings enable, and keeps their failures from the traffic."""
