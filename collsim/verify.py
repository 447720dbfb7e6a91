from collsim.verification import *
from collsim.verification import verify, check_contract, initial_buffers, random_order, Buffers
