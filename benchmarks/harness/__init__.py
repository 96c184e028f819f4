"""How a workload is run: times, memory, the machine, the bare loop in C."""
