// Package proof holds a ledger to its promises: it walks the journal line by line,
// folds it again, and compares what comes out with the entries as they are stored
// and, where somebody watched from outside, with what the service and the disk saw.
// It also makes the receipt that is written beside an archived source.
//
// It never trusts the entries to explain themselves, never repairs anything, does
// no I/O and renders nothing: a broken promise is a [Finding] with the promise's
// number, the key it concerns, and one sentence.
//
// The check is the same after a crash as before: it knows only committed lines and
// committed entries, so it may run at any moment on one consistent snapshot of
// both. Its memory grows by about a hundred bytes for each entry and each
// registration, and by nothing else; where entries can be looked up, only for those that
// were on their way at the same time, and for registrations that their entries list no more.
package proof
