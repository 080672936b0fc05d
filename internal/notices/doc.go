// Package notices takes the notifications of the business network into the ledger. It lists them again and again, commits each as it
// came with what it means for its document, and acknowledges it at the network only after that.
//
// If documents are received, a notification that announces one becomes an
// arrival, and is left to whoever receives it; see package receive. Any other
// notification about a document that the ledger does not know, or about a
// number that was found taken, is kept, and is not acknowledged: another
// program may wait for it. Nothing is concluded from a list that leaves
// something out.
//
// After a crash the network lists what was not acknowledged again. What the ledger holds already is then acknowledged without being
// applied twice. An acknowledgement of which nobody heard is repeated; that the network does not know it any more counts as done.
package notices
