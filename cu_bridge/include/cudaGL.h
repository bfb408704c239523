// Graphics and CUDA in one memory: there is no graphics processor that could share it.
#pragma once

#error "OpenGL interoperability is not there on the MXMACA device: copy through host memory"
