"""What becomes of upstream's wheel, in this order:

``upstream`` fetches it · ``stripped`` takes out what is NVIDIA's (``device_code``, ``elf``, ``patchelf``) · ``native``
compiles the SDK and the operators · ``patches`` and ``metadata`` change the rest · ``torch_wheel`` and ``sdk_wheel``
put the results together (``wheel``) · ``verify`` checks them · ``dependencies`` and ``index`` make them installable by
name.
"""
