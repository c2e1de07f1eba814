//! Installing NVRTC, with stand-ins for python3 so that nothing is downloaded.
