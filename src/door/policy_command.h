/* `adyton policy`: what the policies say, and whether a policy file is one. */
#pragma once

/* argv[0] is "policy". Returns the exit status: 0 ok, 1 the policy is wrong or could not
 * be read or printed, 2 usage. Results go to stdout, sentences to stderr. */
int policy_command(int argc, char **argv);
