// Package archive holds the nouns of vaultd: the identifiers, the document with its metadata and limits, the sealed package, the
// upload ticket, what the service says of registrations and archived documents, and the instant by which deadlines are measured.
//
// It never does I/O, never reads a clock and never decides what happens next. Every value here is data, and every function except
// [NewKey], which draws random bits, gives the same result for the same arguments. The four identifiers are four types, so that
// mixing them up does not compile. A value that holds a secret, such as the URL of a ticket, does not print itself. The wire
// format of a service belongs to its client; only the canonical metadata is here, because identities are derived from its bytes.
//
// A crash changes nothing here. An ID is derived from what a person dropped, so the same folder gives the same ID before and
// after it.
package archive
