// NPP, a library of image and signal functions, has no counterpart here.
#pragma once

#error "NPP is not part of the MXMACA SDK"
