// Package archive holds the nouns of vaultd: the identifiers, the document with
// its metadata and limits, the sealed package, the upload ticket, the service's
// status words, and the instant in which deadlines are reckoned.
//
// It never does I/O, never reads a clock and never decides what happens next:
// every value here is data, and every function gives the same answer for the
// same arguments. The four identifiers are four types, so that mixing them up
// does not compile. Values that hold a secret (a ticket's URL) cannot print
// themselves.
//
// Nothing here changes with a crash: an ID is derived from what a person
// dropped, so the same folder yields the same ID, and a frozen request the same
// bytes, before and after.
package archive
