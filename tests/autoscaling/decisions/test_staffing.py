from gputwin.autoscaling.decisions.interface import LoadForecast
from gputwin.autoscaling.decisions.staffing import forecast_rate


def test_a_forecast_made_a_hair_later_than_now_is_read_from_its_first_step() -> None:
    forecast = LoadForecast(1e-12, 60.0, {0.9: (3.0, 2.0, 100.0)})
    assert forecast_rate(forecast, 0.9, now_s=0.0, horizon_s=60.0, late_after_s=300.0) == (3.0, "")


def test_a_forecast_without_values_is_none() -> None:
    rate, why = forecast_rate(LoadForecast(1e-90, 60.0, {0.9: ()}), 0.9, 0.0, 60.0, 300.0)
    assert rate is None
    assert "ends" in why
