// Package receive is the engine of documents that come in over the business network. Each is an arrival of the ledger, which a notification
// announced. It fetches the document and every file that the document names into a folder of vaultd's own, puts them into a drop folder of
// the archive, confirms the receipt if that is configured, and only then deletes the notification at the network.
//
// Nothing is deleted there before every byte is durable and digested here and lies in the drop folder. Nothing that the document does not
// tell is guessed: without a number or a date it comes back from the drop folder, and a person completes it. No fault ends an arrival.
// Its files here are removed when the archive has the document, and not before.
//
// After a crash nothing needs to be repaired: [Engine.Run] asks the ledger what is due and goes on. A file that was under way is fetched
// anew from its first byte. A document that is put into the drop folder twice has one identity, so that the archive has it once. A
// confirmation or a deletion of which nobody heard is repeated.
package receive
