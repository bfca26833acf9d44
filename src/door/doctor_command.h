/* `adyton doctor`: what this host offers, layer by layer, and what mends what is missing.
 */
#pragma once

/* argv[0] is "doctor". Returns 0 when the default policy can run here, 1 when it cannot,
 * 2 for a wrong use of the command, 125 when the host could not be looked at. */
int doctor_command(int argc, char **argv);
