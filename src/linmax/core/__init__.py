"""What every linear rule stands on: the contract, the linear-max transformation, averages, rivals, search."""
