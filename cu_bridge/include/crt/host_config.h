// What host compiler it is: nothing has to be said about it.
#pragma once
