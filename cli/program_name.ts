/** The name of the program in help, examples and completions. */

export const PROGRAM = "service-cli";
