// Package custody keeps the files of what comes in on disk as they came, each
// with its digest: those of extracts ([Custody]) for as long as the
// administrator keeps the folder, and those of received documents ([Received])
// until the archive has them. A manifest beside the files of an extract says
// that it is whole. Everything that is derived from extracts can be made from
// this folder again.
//
// Of an extract it never overwrites and never removes a file that bears its
// name: where other bytes come under a name that is held, they lie beside it.
// It follows no link, and names that come from the service are made harmless
// first. It unpacks nothing onto the disk. It writes neither addresses nor
// credentials.
//
// A file gets its name only when its bytes are durable and were read to the end
// of their container. The manifest is written last. So after a crash a file
// without a manifest is one that is whole, and a part of a file bears a name
// that ends in ".part" or is hidden; the next download of that file replaces
// the part.
package custody
