// Package catalog finds documents by what people remember of them: part of a folder's name, of an invoice number or of the name of
// sender or recipient, or the beginning of a key or number. It keeps one file, catalog.db in the state directory, which is made from
// the ledger and can be made again at any time.
//
// It is never a source of truth. No step of the pipeline reads it or waits for
// it. Its proposals are compared with the ledger before anybody sees them. A
// question enters what the ledger has committed before it is answered, so that
// an answer never misses a committed document; where that is not possible, the
// answer says so ([IncompleteError]). The charts of the pages alone are drawn
// from rows as they are. The daemon writes the file, and while it is stopped a
// command does: both have the lock of the state directory. The file is in no
// backup.
//
// Rows and their position in the journal are committed together. After a crash
// the next start goes on at that position. If file and ledger do not belong
// together, or the file is damaged, incomplete or of another version, it is
// made anew beside the work.
//
// # What a row is
//
// A document has a row with the columns that lists sort and filter by, and a
// text: its names, numbers and the first characters of its key and numbers, in
// each of their spellings. Rows are numbered in the order of keys; where one
// comes late, those behind it get other numbers. An index of SQLite (FTS5,
// trigrams) holds which texts have three characters one after the other. Shorter
// words read the rows. The parties of a document are often those of another one:
// they are stored once, and their number is in the text as three characters.
//
// # Figures
//
// How many documents were archived or delivered on a day, and what the service
// counts in a month, are sums in a table: each transaction takes away what its
// rows counted before and adds what they count now. The day is that of the
// configured time zone, so a file of another zone is made anew. Figures lack
// what was committed in the last seconds, unless [Catalog.CatchUp] was called,
// and nothing decides by them.
//
// # What is erased
//
// If a line tells of an entry whose document the ledger does not have any more,
// the file is removed and made anew: names of parties, segments of the index
// and the log hold its words long after its row changed. What else is replaced
// is overwritten in the file (secure_delete).
package catalog
