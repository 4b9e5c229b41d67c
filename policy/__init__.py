"""What the market policy rests on, made and measured offline: hazards, thresholds, replays of series.

Imports of the application the pure policies alone (relaunch.core.market).
"""
