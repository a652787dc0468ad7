"""When will a pending job start: simulated ahead many times, calibrated on earlier waits, tested in time order."""
