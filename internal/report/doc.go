// Package report renders the audit: what was dropped, what became of each folder,
// what it costs, what people did, and what nobody can prove, as a page for people, a
// table for spreadsheets and an object for programs.
//
// It never writes to a ledger and never asks the service. It calls a year
// complete only when everything on a list of what was expected is archived:
// without such a list a year is complete as dropped, at best. It trusts no
// stored count: [Examine] replays the journal and compares every entry with it,
// and what does not agree stands at the top of the report. If the caller brings
// an examination that goes on from an earlier one, the report says up to which
// line it rests on that, and counts every entry itself.
//
// The ledger may live on meanwhile. Its entries are read twice, page by page:
// once for the summary, which comes first, and once for the table, whose rows
// go straight to the writers: to the page the newest ones, to the tables all of
// them. If the two differ the end of the report says what changed. Memory does
// not grow with the ledger, but for eight bytes a registration. A crash leaves
// nothing behind: whoever keeps the output gives it its name once it is whole.
package report
