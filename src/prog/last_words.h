/* What is said when a library would end the program by itself. */
#pragma once

/* Makes libevent end with a sentence and the status of our own faults. */
void last_words_install(void);
