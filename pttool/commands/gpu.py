"""`pttool gpu`: GPUs seen, picked, waited for, freed and reset, without torch."""

from pttool.app import noun, verb
from pttool.commands.gpu_doctor import doctor
from pttool.commands.gpu_jobs import kill, reset, run
from pttool.commands.gpu_picking import pick, wait
from pttool.commands.gpu_viewing import info, ps

VERBS = (info, ps, pick, wait, run, kill, reset, doctor)

app = noun("See, pick, wait for, free and reset GPUs, and say why there is none.")

for function in VERBS:
    verb(app, runs_a_command=function is run)(function)
