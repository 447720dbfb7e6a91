from collsim.tracing import *
from collsim.tracing import trace, MAX_MESSAGES
