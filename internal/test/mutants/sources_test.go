package mutants

// sources are mistakes with what people gave us.
var sources = []mutant{
	{
		name: "ReceiptWithoutSecondLook", promise: "I17", file: "internal/dropwork/mover.go",
		old: "return f.FindDifferences(ctx, claimOf(e), e.Dest, m.contentsOf(doc))", new: "return nil, nil", tests: []string{"-run Keep vaultd/internal/daemon"},
	},
	{
		name: "DisposedWithoutSuccess", promise: "I3", file: "internal/ledger/transition.go",
		old: "done := e.State == Archived && e.ArchivedRemote != \"\" || e.State == Delivered", new: "done := e.State.IsFinal()", tests: []string{pure},
	},
	{
		name: "DisposedBeforeItsGrace", promise: "I3", file: "internal/ledger/source.go",
		old: "|| !e.mayDispose() || at.Wall.Before(e.DisposeAt) {", new: "|| !e.mayDispose() {", tests: []string{pure},
	},
	{
		name: "DisposedThoughContradicted", promise: "I13", file: "internal/ledger/transition.go",
		old: "unhappy := e.Contradicted || e.Recipient", new: "unhappy := e.Recipient", tests: []string{pure},
	},
	{
		name: "DisposedWithoutComparing", promise: "I18", file: "internal/drop/inspect.go",
		old: "if sum != want.SHA256 || identityOf(after) != identityOf(info) {", new: "if sum.IsZero() || identityOf(after) != identityOf(info) {", tests: []string{folders},
	},
	{
		name: "DisposedThoughItChanged", promise: "I18", file: "internal/drop/inspect.go",
		old: "if err == nil && identityOf(info) != in.matched[path.Join(at, name)] {", new: "if err == nil && identityOf(info) == (identity{}) {",
		tests: []string{folders},
	},
	{
		name: "ForeignFilesGoToo", promise: "I18", file: "internal/drop/inspect.go",
		old: "\treturn in.reportUnexpected(full, \"was not \"+in.done)\n", new: "\tin.matched[full] = identityOf(info)\n\treturn nil\n", tests: []string{folders},
	},
	{
		name: "LinksFollowed", promise: "I19", file: "internal/durable/file.go",
		old: "unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC", new: "unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC", tests: []string{"vaultd/internal/durable", folders, packing},
	},
	{
		name: "EveryDropFolderIsOurs", promise: "I16", file: "internal/drop/mark.go",
		old: "case found.LedgerID != ours.LedgerID:", new: "case found.LedgerID == \"\":", tests: []string{folders},
	},
	{
		name: "LaterEpochIgnored", promise: "I16", file: "internal/drop/mark.go",
		old: "case found.Epoch > ours.Epoch:", new: "case found.Epoch > ours.Epoch+1<<40:", tests: []string{folders},
	},
	{
		name: "UnmountedMeansNew", promise: "I15", file: "internal/drop/drop.go",
		old: "f.cfg.HasWorkedHere && errors.Is(err, fs.ErrNotExist) {\n\t\treturn fmt.Errorf(\"%w: %q has no %s any more;", new: "false && errors.Is(err, fs.ErrNotExist) {\n\t\treturn fmt.Errorf(\"%w: %q has no %s any more;",
		tests: []string{folders},
	},
	{
		name: "ReplacedFolderIsTheSame", promise: "I19", file: "internal/drop/drop.go",
		old: "if !os.SameFile(now, f.openedAs) {", new: "if !now.IsDir() {", tests: []string{folders},
	},
	{
		name: "RenameReplaces", promise: "I1", file: "internal/durable/rename.go",
		old: "to, newname, unix.RENAME_NOREPLACE)", new: "to, newname, 0)", tests: []string{"vaultd/internal/durable", folders},
	},
	{
		name: "FileNotSynced", promise: "I5", file: "internal/durable/file.go",
		old: "if err := p.dir.hook.runOp(\"sync\", p.name, p.File.Sync); err != nil {", new: "if err := error(nil); err != nil {", tests: []string{"vaultd/internal/durable"},
	},
	{
		name: "DirectoryNotSynced", promise: "I5", file: "internal/durable/file.go",
		old: "\treturn p.dir.Sync()\n", new: "\treturn nil\n", tests: []string{"vaultd/internal/durable"},
	},
	{
		name: "SettledOnceIsEnough", promise: "I17", file: "internal/ingest/seal.go",
		old: "if look != e.Fingerprint {", new: "if look.IsZero() {", tests: []string{engine, "vaultd/internal/daemon", worlds},
	},
	{
		name: "RightsOfAFolderOutsideTheLook", promise: "I23", file: "internal/watch/scan.go",
		old: "uint64(st.Mode), uint64(st.Uid)<<32 | uint64(st.Gid), ", new: "uint64(st.Mode & unix.S_IFMT), ", tests: []string{watching},
	},
	{
		name: "RefusedFolderHiddenWhileTried", promise: "I23", file: "internal/watch/snapshot.go",
		old: "if (c.isBeingTaken || c.isReady) && c.refusals == 0 ||", new: "if c.isBeingTaken || c.isReady ||", tests: []string{watching},
	},
	{
		name: "OverflowIgnored", promise: "I22", file: "internal/watch/rescan.go",
		old: "\t\tcase e.Overflow:\n\t\t\ts.rescans.isSoon = true\n", new: "\t\tcase e.Overflow:\n", tests: []string{watching},
	},
	{
		name: "EventsAloneAreTheTruth", promise: "I22", file: "internal/watch/rescan.go",
		old: "\tr := rescanPass{session: s, counts: notTakenCounts{}, now: now, firstQueued: -1}\n\tif err := r.readAll(ctx); err != nil {", new: "\tr := rescanPass{session: s, counts: notTakenCounts{}, now: now, firstQueued: -1}\n\tif err := ctx.Err(); err != nil {",
		tests: []string{watching},
	},
	{
		name: "AnybodysChangeTakenForOurs", promise: "I22", file: "internal/watch/rescan.go",
		old: "if e.Name != \"\" && s.cfg.IsReserved(e.Name) {", new: "if e.Name != \"\" {", tests: []string{watching},
	},
	{
		name: "NeverReadAgain", promise: "I22", file: "internal/watch/rescan.go",
		old: "l.ownEvents > 0 && now.Sub(l.noSidecar.lastFullRead) < maxFullReadAge", new: "l.ownEvents > 0", tests: []string{watching},
	},
	{
		name: "PackageNotReadBack", promise: "I4", file: "internal/packager/packager.go",
		old: "\tsum, err := b.readBack(ctx, part, w, files)\n\tif err != nil {\n\t\treturn nil, archive.Package{}, err\n\t}\n", new: "\tsum, _ := b.hashWhole(ctx, part, w)\n", tests: []string{packing},
	},
	{
		name: "EntriesNotReadBack", promise: "I4", file: "internal/packager/readback.go",
		old: "case f.Name != want.Path || n != want.Size || archive.Digest(sum.Sum(nil)) != want.SHA256:", new: "case f.Name != want.Path || n != want.Size:", tests: []string{packing},
	},
	{
		name: "RunNotFlushed", promise: "I4", file: "internal/packager/deflate.go",
		old: "\t\t\tif err := s.open.Flush(); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n", new: "", tests: []string{packing},
	},
	{
		name: "IdentityFromThePackage", promise: "I10", file: "internal/packager/packager.go",
		old: "archive.DeriveID(d.rules.Vault, s.Content, archive.Sum(s.Metadata))", new: "archive.DeriveID(d.rules.Vault, s.Package.SHA256, archive.Sum(s.Metadata))", tests: []string{packing},
	},
	{
		name: "NetworkIdentityWithoutTheDocument", promise: "I10", file: "internal/packager/network.go",
		old: "archive.DeriveNetworkID(content, document.SHA256)", new: "archive.DeriveNetworkID(content, archive.Sum(n.document.Metadata()))", tests: []string{packing},
	},
	{
		name: "OtherDocumentPackedThanChecked", promise: "I17", file: "internal/packager/packager.go",
		old: "if d.rules.isNetwork && files[0].SHA256 != d.checkedDocument {", new: "if false {", tests: []string{packing},
	},
	{
		name: "TimeInThePackage", promise: "I10", file: "internal/packager/zip.go",
		old: "ModifiedDate: fixedDate,", new: "ModifiedDate: fixedDate + uint16(len(name)%7),", tests: []string{packing},
	},
	{
		name: "BinaryMegabytes", promise: "I12", file: "internal/archive/document.go",
		old: "MB             = 1_000_000", new: "MB             = 1 << 20", tests: []string{"vaultd/internal/archive", "vaultd/internal/billing", packing},
	},
	{
		name: "UnknownSizeIsNoBytes", promise: "I12", file: "internal/ledger/transactions.go",
		old: "if t.Size <= 0 {", new: "if false {", tests: []string{"-run Transactions " + pure, "vaultd/internal/billing"},
	},
	{
		name: "SecondSuccessIsNoTransaction", promise: "I12", file: "internal/ledger/transactions.go",
		old: "if r.Fate != Succeeded ||", new: "if r.Fate != Succeeded || len(all) > 0 ||", tests: []string{"-run Transactions " + pure},
	},
	{
		name: "SecondSuccessInTheYearOfTheFirst", promise: "I12", file: "internal/ledger/transactions.go",
		old: "at := r.SucceededAt\n\t\tif at.IsZero() {", new: "at := r.SucceededAt\n\t\tif true {", tests: []string{"-run Transactions " + pure},
	},
	{
		name: "AverageOverUnknownSizes", promise: "I12", file: "internal/billing/billing.go",
		old: "avg := new(big.Rat).SetFrac(bytes, new(big.Int).SetUint64(t.Documents-t.Unsized))", new: "avg := new(big.Rat).SetFrac(bytes, new(big.Int).SetUint64(t.Documents))", tests: []string{"vaultd/internal/billing"},
	},
	{
		name: "OneDayTellsTheRate", promise: "I12", file: "internal/billing/forecast.go",
		old: "if now.Sub(begin(0)) < shortest {", new: "if now.Equal(begin(0)) {", tests: []string{"vaultd/internal/billing"},
	},
	{
		name: "FloatAmount", promise: "I10", file: "internal/archive/document.go",
		old: "field(\"amount\", json.RawMessage(d.Amount), d.Amount == \"\")", new: "amount, _ := d.Amount.Rat().Float64()\n\tfield(\"amount\", amount, d.Amount == \"\")",
		tests: []string{"vaultd/internal/archive", packing},
	},
	{
		name: "SidecarKeyTwice", promise: "I10", file: "internal/packager/json.go",
		old: "\treturn v, s.twice, nil\n", new: "\treturn v, nil, nil\n", tests: []string{packing},
	},
	{
		name: "BadUTF8Accepted", promise: "I10", file: "internal/packager/json.go",
		old: "\tif utf8.Valid(s.src) {\n\t\treturn\n\t}\n", new: "\tif utf8.Valid(s.src) || len(s.src) > 0 {\n\t\treturn\n\t}\n", tests: []string{packing},
	},
	{
		name: "FirstStillOpenIsADuplicate", promise: "I2", file: "internal/ingest/seal.go",
		old: "\tcase ledger.WaitFor:\n\t\treturn c.waitForFirst(e, first)\n", new: "\tcase ledger.WaitFor:\n\t\treturn []ledger.Change{c.newChange(e, ledger.FoundDuplicate{First: first.Key})}\n",
		tests: []string{engine, worlds},
	},
	{
		name: "NoBrake", promise: "I3", file: "internal/operator/disposal.go",
		old: "case p.Done+due > usual:", new: "case usual < 0:", tests: []string{"-run DisposalLimit vaultd/internal/operator"},
	},
	{
		name: "SpoolFollowsALink", promise: "I19", file: "internal/statedir/statedir.go",
		old: "\tdir, err := state.OpenDirOrMount(name)\n\tif errors.Is(err, fs.ErrNotExist) {", new: "\tdir, err := durable.Open(filepath.Join(stateDir, name), fault)\n\tif errors.Is(err, fs.ErrNotExist) {",
		tests: []string{"-run TestOpen_I19 vaultd/internal/daemon"},
	},
	{
		name: "ForeignFileInSpoolRemoved", promise: "I19", file: "internal/spool/count.go",
		old: "\t\t\tcase isHalfMade(name):", new: "\t\t\tcase name != \"\":", tests: []string{"-run TestSpool_I19 vaultd/internal/spool", "-run TestSpool_I19 vaultd/internal/daemon"},
	},
	{
		name: "MountsToldByDeviceAlone", promise: "I19", file: "internal/durable/mount.go",
		old: "return s.mount != parent.mount || s.IsDir()", new: "return s.IsDir()", tests: []string{"-run I19 vaultd/internal/durable", "-run TestMount " + folders},
	},
	{
		name: "AnotherFolderTakenForTheSpool", promise: "I4", file: "internal/spool/spool.go",
		old: "if err == nil && s.isOpened(dir) {", new: "if err == nil && (s.isOpened(dir) || true) {", tests: []string{"-run TestSpool_I vaultd/internal/spool", "-run TestSpool_I vaultd/internal/daemon"},
	},
	{
		name: "MissingInAnotherFolder", promise: "I24", file: "internal/spool/spool.go",
		old: "if err := s.checkInPlace(); err != nil {\n\t\treturn archive.Package{}, err", new: "if err := error(nil); err != nil {\n\t\treturn archive.Package{}, err", tests: []string{"-run TestSpool_I vaultd/internal/spool", "-run TestSpool_I vaultd/internal/daemon"},
	},
	{
		name: "PackedWithAnotherFolderInPlace", promise: "I24", file: "internal/spool/spool.go",
		old: "\tif err := s.checkInPlace(); err != nil {\n\t\treturn err\n\t}\n", new: "", tests: []string{"-run TestSpool_I vaultd/internal/spool", "-run TestSpool_I vaultd/internal/daemon"},
	},
	{
		name: "AnotherFolderExamined", promise: "I12", file: "internal/spool/spool.go",
		old: "f, _, err := durable.OpenRegular(s.names.Root(), PackageName(r, k))", new: "f, err := os.Open(s.PackagePath(r, k))", tests: []string{"-run TestSpool_I vaultd/internal/spool", "-run TestSpool_I vaultd/internal/daemon"},
	},
	{
		name: "PackageRemovedByItsPath", promise: "I19", file: "internal/spool/spool.go",
		old:   "if err := s.names.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {\n\t\treturn fmt.Errorf(\"remove package",
		new:   "if err := os.Remove(s.PackagePath(r, k)); err != nil && !errors.Is(err, fs.ErrNotExist) {\n\t\treturn fmt.Errorf(\"remove package",
		tests: []string{"-run TestSpool_I vaultd/internal/spool", "-run TestSpool_I vaultd/internal/daemon"},
	},
	{
		name: "StatxRefusedByAFilterIsAFault", promise: "I24", file: "internal/durable/mount.go",
		old: "errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {", new: "errors.Is(err, unix.ENOSYS) {", tests: []string{"-run TestStatx " + folders},
	},
	{
		name: "OldKernelIsAFault", promise: "I24", file: "internal/durable/mount.go",
		old: "errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {", new: "errors.Is(err, unix.EPERM) {", tests: []string{"-run TestStatx " + folders},
	},
	{
		name: "StatxRefusedByAFilterHidesFolders", promise: "I24", file: "internal/watch/mount.go",
		old: "errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {", new: "errors.Is(err, unix.ENOSYS) {", tests: []string{"-run TestStatx " + folders},
	},
	{
		name: "AnyFaultOfTheDiskIsAnOldKernel", promise: "I24", file: "internal/watch/mount.go",
		old: "errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {", new: "err != nil {", tests: []string{"-run TestStatx " + folders},
	},
	{
		name: "TableOfMountsNotAsked", promise: "I19", file: "internal/durable/mount.go",
		old: "if d.openedAs.mount == 0 {", new: "if d.openedAs.mount == 0 && false {", tests: []string{"-run TestStatx " + folders},
	},
	{
		name: "MountIgnoredAtDisposal", promise: "I18", file: "internal/drop/dispose.go",
		old: "\tif err := checkNoMounts(parent, p.name); err != nil {\n\t\treturn nil, durable.PrefixMountPath(p.rel(), err)\n\t}\n", new: "",
		tests: []string{"-run TestMount_I18 vaultd/internal/daemon", "-run TestMount " + folders},
	},
	{
		name: "MountIgnoredWhilePacking", promise: "I18", file: "internal/dropwork/packer.go",
		old: "\tif err := dir.FindMount(); err != nil {\n\t\treturn p.describeMount(e.Key, claimPath(e), err)\n\t}\n", new: "",
		tests: []string{"-run TestMount_I18 vaultd/internal/daemon"},
	},
	{
		name: "ReturnedWithAMountInIt", promise: "I18", file: "internal/drop/place.go",
		old: "\tif err := checkNoMounts(from, c.Folder); err != nil {", new: "\tif err := error(nil); err != nil {",
		tests: []string{"-run TestMount_I18 vaultd/internal/daemon", "-run TestMount " + folders},
	},
}
