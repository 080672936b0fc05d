// Package recovery compares a ledger with the archive and with the drop folders. [Rebuild] makes the entries of a new ledger
// from what lies in the drop folders. [Reconcile] compares a ledger with the status list and the index of each vault, tells
// entries what the archive has of them, and clears the doubt of those entries that the answers speak for. [AskEach] asks
// about single registrations.
//
// It never sends a document, and it never moves or removes a folder. Missing information proves nothing: it believes that a
// document was not registered only where the status list goes back behind the last line of the ledger, or where no upload can
// be running any more and the whole index was read since.
//
// It keeps no file of its own. Everything that it decides is a change of the ledger. After a crash some of these changes are
// committed and the others are not; the next comparison asks everything again and decides the rest. A ledger that is being
// rebuilt is not put in its place before it is complete.
package recovery
