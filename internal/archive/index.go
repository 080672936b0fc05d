package archive

import "time"

// StatusList is what the service says of the last registrations of a vault.
type StatusList struct {
	Receipts []Receipt
	Whole    bool      // every record was read, none contradicts another, and the answer tells of no more: only then does what is missing say something
	Date     time.Time // the service's clock as the answer gave it; zero: missing
}

// IndexRecord is one archived document as the index of a vault shows it: no clientUUID and no size.
type IndexRecord struct {
	ArchiveID  string
	Remote     RemoteID  // empty where it cannot be used
	ArchivedAt time.Time // zero: not told
	Document   Document  // as far as the index repeats it
	Raw        []byte    // the record as it came
}

// IndexResult tells how much of an index was read.
type IndexResult struct {
	Read     int    // documents, each counted once
	Found    int    // documents in the index, the largest number that a page told; -1: none told it
	Complete bool   // the whole index was read
	Why      string // it is not complete, in words
	Request  string // id of the last page's call
}
