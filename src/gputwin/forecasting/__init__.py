"""What demand comes next: series from a trace, models, backtests, calibrated forecasts."""
