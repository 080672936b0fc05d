// Package page gives the HTML pages for people: how it stands, the search, one document, the report, the booked invoices
// that are not archived, and the sign-in, in English and German. It needs no script; one small script keeps the first page fresh.
//
// It never reads the ledger, the catalog or a drop folder itself: it asks a [Source]. It changes nothing, and decides nothing but
// what a visitor may see: without the right to read, a page has counts and states only. A page asks nothing of other hosts.
//
// A crash means nothing here: the package keeps nothing. A download that a crash cuts off stands in the journal as announced.
package page
