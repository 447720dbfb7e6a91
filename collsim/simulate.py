from collsim.simulation import simulate
