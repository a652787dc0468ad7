"""Slurm's priority of jobs: multifactor, fair share (classic and fair tree), usage that decays, settings of slurm.conf."""
