"""What kind of job is this, and how long will it run: job classes and duration models."""
