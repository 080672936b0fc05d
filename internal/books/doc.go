// Package books answers which booked invoices are in the archive. It folds the records of all extracts that are held into one table of
// booked invoices, and compares them with the ledger's entries and, where it was read, with the archive's own index.
//
// Columns are found by their names. The table definition of each extract must have every column that the settings name; a lost one stops
// the answer. The last record of a key counts, in the order in which the time of the extracts ends. So the fold has the same outcome in
// whatever order extracts arrive.
//
// An invoice is called archived only where exactly one archived entry, or one record of the index, is its own in every value that both
// have. Numbers that are alike are shown and never count, and neither does one of several candidates. What no extract covers makes every
// answer incomplete.
//
// It keeps one file, books.db in the state directory. It is derived from the custody and the ledger alone: where it is missing, damaged or
// made with other settings it is made anew. It is in no backup. Each extract is folded in one transaction, so after a crash the next answer
// goes on with the extracts that are missing. Nothing here changes the custody or the ledger.
//
// An answer that reads no index keeps in the file which document and which booked row belong together: their numbers, and no text of a
// document. They name the head of the ledger and the count of changes of the rows that they were made of. While both are the same, an
// answer about any days and any company reads them instead of the ledger. What is not whole, or has another digest, is made again.
package books
