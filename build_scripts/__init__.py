"""The wheel factory: rebuilds upstream's CUDA wheels for the MXMACA device family.

``python -m build_scripts --help`` lists the commands. A file ``main_<command>.py`` holds a command, every other
module one noun of the trade: ``elf``, ``device_code``, ``wheel``, ``patches``, ``native``, …
"""
