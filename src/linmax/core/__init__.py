"""The base of every linear rule: the contract, the linear-max transformation, averages, rivals, search."""
