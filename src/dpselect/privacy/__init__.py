"""What releases cost: pure functions of public parameters. No data, no noise, no state."""
