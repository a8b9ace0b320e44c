package main

import "strings"

// sequenceExits are the exit codes of the sequence commands.
var sequenceExits = []exitTest{
	{"sequence list", 0, ""},
	{"sequence create orders --store STATE", 0, ""},
	{"sequence list --store /nosuch/dir", 1, "tickflake: no sequence was ever created here: there is no directory /nosuch/dir: create one, or check --store"},
	{"sequence list --store /dev/null", 1, "tickflake: state directory \"/dev/null\" is not fit for cells: it is not a directory"},
	{"sequence next orders --store STATE", 1, "tickflake: *no such sequence*"},
	{"sequence show orders --store STATE", 1, "tickflake: *no such sequence*"},
	{"sequence set orders --next 5 --yes --store STATE", 1, "tickflake: *no such sequence*"},
	{"sequence delete orders --yes --store STATE", 1, "tickflake: *no such sequence*"},
	{"sequence import", 2, "tickflake: 0 files given, want one: that of the export, or - for standard input\nsee 'tickflake sequence import --help'"},
	{"sequence list x", 2, "tickflake: list takes no arguments, got \"x\"\nsee 'tickflake sequence list --help'"},
	{"sequence next", 2, "tickflake: 0 names given, want one: that of the sequence\nsee 'tickflake sequence next --help'"},
	{"sequence create Orders", 2, "tickflake: name: \"Orders\" holds 'O', want lower-case ASCII letters, digits, *\nsee 'tickflake sequence create --help'"},
	{"sequence show ..", 2, "tickflake: name: \"..\": want a name\nsee 'tickflake sequence show --help'"},
	{"sequence next " + strings.Repeat("x", 65), 2, "tickflake: name: \"xxxxxxxxxxxxxxxxxxxx\" has 65 bytes, want 1 to 64\nsee 'tickflake sequence next --help'"},
	{"sequence create orders --mode random", 2, "tickflake: --mode: want segmented or ordered, got \"random\"\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --start -1", 2, "tickflake: --start: want at least 0, got -1\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --max 0", 2, "tickflake: --max: want at least 1, got 0\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --stride 2", 2, "tickflake: --stride 2 needs --offset: every site has the same stride and an offset of its own, from 0 to 1\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --offset 1", 2, "tickflake: --offset 1 needs --stride: every site has the same stride, above 1, and an offset of its own\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --step 0", 2, "tickflake: --step: want a number from 1 to 1099511627776 or a range such as 16-1000000, got \"0\"\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --step 5-1099511627777", 2, "tickflake: --step: want a number from 1 to 1099511627776 or a range such as 16-1000000, got \"5-1099511627777\"\nsee 'tickflake sequence create --help'"},
	{"sequence create orders --mode ordered --step 5", 2, "tickflake: --step 5-5: an ordered sequence has no steps: leave it out\nsee 'tickflake sequence create --help'"},
}
