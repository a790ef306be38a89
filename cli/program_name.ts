/** The name of the program in help, examples and completions. */

export const PROGRAM = "service-cli";

/** Of this program; the same as that of the service that it was made with. */
export const VERSION = "0.1.0";
