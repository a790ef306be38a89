/** The version of the service, its API description, its client and its command line. */

export const VERSION = "0.1.0";
