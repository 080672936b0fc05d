// Package arrivals takes in what a service has for us: the extracts of the
// accounts-payable system, and the documents that come in over the business
// network. Each is an arrival of the ledger. Its files are taken into custody
// one by one and, where that is configured, put into a drop folder of the
// archive. The service is told, or a notification there deleted, only after
// that.
//
// Every call that a service may count or that changes something there has its
// intent in the ledger before it leaves, and its outcome after. Nothing is
// acknowledged or deleted there before every byte is durable and digested here;
// of an extract the list of its files, asked for again, named no other one. An
// extract is given up only where a whole list leaves it out and the service,
// asked by its number, does not know it; a document is given up by a person
// alone. Missing rights, faults of the way and full disks end nothing. Nothing
// that a document does not tell is guessed: without a number or a date it comes
// back from the drop folder, and a person completes it.
//
// After a crash nothing needs to be repaired here: [Engine.Run] asks the ledger
// what is due and goes on. A download that was under way stays counted, and
// begins anew from its first byte. A folder that is put into the drop folder
// twice has the same identity both times, so the archive has it once. A
// confirmation or a deletion of which nobody heard is repeated. An extract that
// custody holds whole and the ledger does not know, as after it was put back,
// is verified and adopted.
package arrivals
