// Package emulator is the remote service as a separate, strict server. Of the archive it has registration of documents, an object
// store behind real pre-signed URLs, archiving that takes time, status, index, download and vault list. Of the PDF upload it has a slot
// per call and one address per slot. It has the data extracts. Of the business network it has files, documents in both directions,
// notifications and the directory of France. And it has the tokens of those services that take them. It is written from the service's
// specification and shares nothing with the clients that are tested against it: a misreading on one side shows as a failure, not as
// agreement.
//
// It refuses what the specification forbids. It records as a violation what a correct client would never do although it cannot
// be refused:
//
//   - of the archive: other bytes under one bumId, credentials sent to the object store, two registrations of one clientUUID that both
//     hold content, a download beyond the number that the test grants;
//   - of the PDF upload: two slots that hold one PDF for one addressee although nobody released it, other bytes in a slot than before, a
//     PUT after the end of its address, a PUT to a slot that was answered with the bumId of another one, and many calls at once in the
//     first second;
//   - of the extracts: a call without its time, more than two downloads at once, and an extract acknowledged before every file was sent;
//   - of the business network: other bytes posted under one bumId, whatever became of the first call; a document that refers to a file
//     which was not stored for it; a file under a bumId in capitals; a notification acknowledged before its document and every file of it
//     were sent, or about a document that is nobody's here; a second word about a received document that no test says a person decided
//     on, whatever became of the first call; a call without credentials; and many calls at once in the first second.
//
// Registrations, PDFSlots, PublishedExtracts, SentDocuments, ReceivedDocuments and Notices tell what it knows. Readings choose between
// the plausible meanings of what the specification leaves open. Faults make calls fail in both forms, before and after the work was done.
//
// It starts no goroutine, opens no connection by itself and uses no other clock than the one it was given. States are computed
// when they are asked for, so a whole archive year passes in a test within milliseconds.
//
// After a crash of the process it knows all that it answered: every fact is one line of journal.jsonl in its directory, written
// before the answer is sent, and a new server replays the lines through the function that applied them first. It syncs nothing,
// so it does not survive a power loss.
//
// What can be asked of it is one table (operations.go): each row says its path or the objects that it is about, the accounts and
// scopes that it needs, and its handler. One more interface of the service adds its rows there, and the handlers in a file of
// its own; authentication, redirects, faults and journal then work for it as for the others.
package emulator
