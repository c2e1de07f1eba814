//! Launches on the emulated device.
