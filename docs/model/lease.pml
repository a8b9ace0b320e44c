/* Grants of ticks over a store with compare-and-swap, with unknown outcomes: the
 * protocol of package lease. README.md says what is modelled and what is not.
 *
 * Ticks are 1..TICKS. A tick of one node number, once stamped, belongs to whoever
 * stamped it: sequence numbers within a tick are left out (but see ORDER).
 *
 * A run has no bound in length: any number of claims, extensions, releases,
 * crashes and restarts. What makes that finite:
 *
 * - Time ends at TICKS, as it does for a layout whose time field runs out.
 * - The version of a cell never comes twice. So all that can ever matter of a
 *   version that somebody remembers, or that a message carries, is whether it still
 *   is the cell's. As soon as it is not, the message can never be carried out any
 *   more, and we remove it (apply).
 * - The holder and nonce in a write serve only for its writer to know it again. So a
 *   record says which living process would know it for its own, or NOBODY.
 * - Instead of noting every stamp, we note those of one tick of cell 0, the
 *   witness, which is picked at the start in every possible way. Whatever tick of
 *   whatever cell were stamped twice, there is a run where it is the witness, as the
 *   cells are alike.
 *
 * Each process may at any time do any of the steps below. The real one does them in
 * a certain order, so all that it can do, the model can, and more.
 */

#ifndef PROCS
#define PROCS 3     /* processes at any one time, at most 6; the dead are replaced at once */
#endif
#ifndef CELLS
#define CELLS 2     /* node numbers, at most 2 */
#endif
#ifndef TICKS
#define TICKS 3     /* at most 14 */
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef NET
#define NET 2       /* writes under way at once, at most 3; see Network for the others */
#endif

#if defined(M9_REFRESH) || defined(M9_SUCCESS) || defined(M9_VERSION) || \
	defined(M11_EARLY) || defined(M11_UNSEAL) || defined(M12) || defined(M13) || \
	defined(NO_CAS) || defined(LOWER) || defined(NO_RAISE) || defined(FORGET) || \
	defined(TOKEN)
#define MUTANT
#endif

#define NOBODY 0    /* processes are 1..PROCS */
#define DEAD (PROCS + 1)
#define NONE CELLS  /* no cell */
#define END (TICKS + 1)

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* ---- The store ---- */

byte limit[CELLS];  /* no tick at or above it was granted to anybody */
byte record[CELLS]; /* the process that would know the last write for its own */

#define time_left(c) (limit[c] < END)

/* A write on its way to the store, in one byte. Its version is the cell's. */
#define WRITE(c, who, l) ((l) * 16 + (c) * 8 + (who))
#define CELL(w)   (((w) / 8) % 2)
#define WRITER(w) ((w) % 8)
#define LIMIT(w)  ((w) / 16)

byte net[NET];      /* sorted, the empty ones (0) last */

#define room (net[NET-1] == 0)

/* ---- The processes ---- */

#define IDLE     0
#define ASKED    1 /* the write was sent; its outcome is unknown as yet */
#define ANSWERED 2 /* the answer is here: carried out */

typedef Process {
	byte node;  /* the cell of its grant, or NONE */
	byte lim;   /* the grant ends before it */
	byte word;  /* the generator's word: the first tick that it has neither stamped
	               nor passed. It is raised to the floor when a grant is taken into
	               use. So it is max(own floor, last stamped tick + 1). */
	bool sealed;
	byte claim; /* the claim under way, if any: */
	byte cell;  /*   for this cell, */
	byte floor; /*   from this tick, */
	byte end    /*   ANSWERED: to before this one */
#ifdef M13
	; byte issued /* last stamped tick + 1 */
#endif
#ifdef ORDER
	; bool open   /* the word stands within tick word-1: it may be stamped again */
	; byte where  /* for the check: the node of the last stamp */
#endif
};

Process p[PROCS + 1]; /* p[0] is not used */

#define claiming(x, c) (p[x].claim != IDLE && p[x].cell == c)

/* The cell's record is that of x's grant, and x knows it. */
#define holds(x) (p[x].node != NONE && record[p[x].node] == x && !claiming(x, p[x].node))

/* x has ticks left. */
#if defined(ORDER)
#define may_stamp(x) (p[x].word < p[x].lim + p[x].open)
#elif defined(M11_UNSEAL)
#define may_stamp(x) (p[x].word < p[x].lim || p[x].sealed)
#else
#define may_stamp(x) (p[x].word < p[x].lim)
#endif

/* ---- What is checked ---- */

byte witness;  /* this tick of cell 0 */
byte stamper;  /* was stamped by this process, or one DEAD, or NOBODY */

/* No two processes ever stamp the same tick of a cell. */
#define check_unique(me) assert(stamper == NOBODY || stamper == me)

/* A cell's limit is above every tick that was ever stamped. */
#ifdef MUTANT
#define check_limit() skip /* of mutants we want to see a tick stamped twice */
#else
#define check_limit() assert(stamper == NOBODY || limit[0] > witness)
#endif

/* ---- Housekeeping: one state for all that are alike ---- */

inline swap(a, b) { h = a; a = b; b = h }

#define PLACE(x) ((((((((((p[x].node * 16 + p[x].lim) * 16 + p[x].word) * 2 + \
	p[x].sealed) * 4 + p[x].claim) * 2 + p[x].cell) * 16 + p[x].floor) * 16 + p[x].end) * 2 + \
	(stamper == x)) * 2 + (record[0] == x)) * 2 + (record[CELLS-1] == x))

/* Ends every step. Who is called 1 and who 2 does not matter, so we keep them sorted,
 * and the messages too. A grant that is used up, of a cell that is lost, is no use any
 * more; nor is a process that is sealed and has lost its cell. (PLAIN: only the
 * messages are sorted.) */
inline tidy() {
	d_step {
#ifndef PLAIN
		for (i : 1 .. PROCS) {
			if
			:: p[i].node != NONE && !may_stamp(i) && !holds(i) && !claiming(i, p[i].node) ->
				p[i].node = NONE; p[i].lim = 0;
				if
				:: p[i].sealed -> restart(i)
				:: else
				fi
			:: else
			fi
		}
		for (i : 1 .. PROCS) {
			for (j : 1 .. PROCS - 1) {
				if
				:: PLACE(j) < PLACE(j+1) ->
					swap(p[j].node, p[j+1].node);
					swap(p[j].lim, p[j+1].lim);
					swap(p[j].word, p[j+1].word);
					swap(p[j].sealed, p[j+1].sealed);
					swap(p[j].claim, p[j+1].claim);
					swap(p[j].cell, p[j+1].cell);
					swap(p[j].floor, p[j+1].floor);
					swap(p[j].end, p[j+1].end);
#ifdef M13
					swap(p[j].issued, p[j+1].issued);
#endif
#ifdef ORDER
					swap(p[j].open, p[j+1].open);
					swap(p[j].where, p[j+1].where);
#endif
					rename(stamper, j);
					rename(record[0], j);
#if CELLS > 1
					rename(record[1], j);
#endif
					for (k : 0 .. NET - 1) {
						h = WRITER(net[k]);
						rename(h, j);
						net[k] = net[k] - WRITER(net[k]) + h
					}
				:: else
				fi
			}
		}
#endif
		for (i : 1 .. NET) {
			for (j : 0 .. NET - 2) {
				if
				:: net[j] < net[j+1] -> swap(net[j], net[j+1])
				:: else
				fi
			}
		}
		i = 0; j = 0; h = 0; k = 0
	}
}

inline rename(who, x) {
	if
	:: who == x -> who = x + 1
	:: who == x + 1 -> who = x
	:: else
	fi
}

inline no_claim(x) { p[x].claim = IDLE; p[x].cell = 0; p[x].floor = 0; p[x].end = 0 }

inline restart(x) {
	no_claim(x);
	p[x].node = NONE; p[x].word = 0; p[x].lim = 0; p[x].sealed = false;
#ifdef M13
	p[x].issued = 0;
#endif
#ifdef ORDER
	p[x].open = false; p[x].where = NONE;
#endif
	if
	:: stamper == x -> stamper = DEAD
	:: else
	fi
}

/* ---- The network and the store ---- */

/* Somebody sends a write: from now on the store may carry it out, at any time or
 * never. Two that are alike are as good as one, as only one can be carried out. */
inline send(to, who, upto) {
	d_step {
		h = WRITE(to, who, upto);
		for (i : 0 .. NET - 1) {
			if
			:: net[i] == h -> h = 0
			:: else
			fi
		}
		if
		:: h -> net[NET-1] = h
		:: else
		fi;
		i = 0; h = 0
	}
}

/* x will not know any write to this cell for its own any more: it gave up, or
 * crashed. Those on their way may still be carried out, see Network. */
inline disown(x, it) {
	d_step {
		if
		:: record[it] == x -> record[it] = NOBODY
		:: else
		fi;
		for (i : 0 .. NET - 1) {
			if
			:: net[i] && CELL(net[i]) == it && WRITER(net[i]) == x ->
#ifdef NO_CAS
				net[i] = WRITE(it, NOBODY, LIMIT(net[i]))
#else
				net[i] = 0
#endif
			:: else
			fi
		}
		i = 0
	}
}

/* The store carries out write w. */
inline apply(w) {
	d_step {
		limit[CELL(w)] = LIMIT(w);
		record[CELL(w)] = WRITER(w);
		for (i : 0 .. NET - 1) {
			if
#ifdef NO_CAS
			:: net[i] == w -> net[i] = 0
#else
			:: net[i] && CELL(net[i]) == CELL(w) -> net[i] = 0 /* their version is past */
#endif
			:: else
			fi
		}
		/* Whoever else claims the cell has lost it. That it finds out at once, and not
		 * some time later, only lets it do more. (FIND_OUT: it finds out later.) */
#if !defined(FIND_OUT) && !defined(M9_REFRESH) && !defined(M9_SUCCESS) && !defined(NO_CAS)
		for (i : 1 .. PROCS) {
			if
			:: i != WRITER(w) && p[i].claim == ASKED && p[i].cell == CELL(w) ->
#ifdef M9_VERSION
				p[i].end = 1 /* it will see another version */
#else
				no_claim(i)
#endif
			:: else
			fi
		}
#endif
		i = 0
	}
}

proctype Network() {
	byte w, f, i, j, k, h;
end:
	do :: atomic { if
	:: net[0] ->
		if
		:: net[0] -> w = net[0]
#if NET > 1
		:: net[1] -> w = net[1]
#endif
#if NET > 2
		:: net[2] -> w = net[2]
#endif
		fi;
		if
		:: true -> /* It reaches the store, */
			apply(w);
			check_limit();
			if
			/* and the answer reaches its writer, in time or not, */
			:: WRITER(w) && p[WRITER(w)].claim == ASKED && p[WRITER(w)].cell == CELL(w) ->
				p[WRITER(w)].claim = ANSWERED;
				p[WRITER(w)].end = LIMIT(w)
			:: WRITER(w) && holds(WRITER(w)) && !p[WRITER(w)].sealed ->
				p[WRITER(w)].lim = LIMIT(w) /* that an extension was carried out */
			/* or is lost. */
			:: true
			fi
		:: true -> /* Or it never reaches the store. */
			d_step {
				for (i : 0 .. NET - 1) {
					if
					:: net[i] == w -> net[i] = 0
					:: else
					fi
				}
				i = 0
			}
		fi;
		w = 0
	/* A claim or an extension, sent by somebody who has crashed or given up since,
	 * or by a process beyond the PROCS that never stamps, is carried out at last.
	 * Such a one raises the limit to anything. We allow it at any time, so that
	 * there may be any number of them. */
	:: time_left(0) || time_left(CELLS-1) ->
		if
		:: time_left(0) -> w = 0
#if CELLS > 1
		:: time_left(1) -> w = 1
#endif
		fi;
		select(f : limit[w] + 1 .. END);
		w = WRITE(w, NOBODY, f);
		apply(w);
		w = 0; f = 0
#ifdef FORGET
	/* The store drops a cell: it was to live for a while only, or was evicted. */
	:: limit[0] > 1 -> w = WRITE(0, NOBODY, 1); apply(w); w = 0
#endif
	fi; tidy() } od
}

/* ---- A process ---- */

#define my p[_pid]

/* It takes the grant [my.floor, upto) into use. */
inline take(upto) {
#ifdef ORDER
#ifdef SAME_TICK
	my.open = my.open && my.floor < my.word; /* raised to the floor only */
#else
	my.open = false; /* raised above the last tick */
#endif
#endif
	my.node = my.cell;
	my.lim = upto;
#ifndef NO_RAISE
	my.word = MAX(my.word, my.floor);
#endif
	no_claim(_pid)
}

/* f := max(now, bound). The clock may show anything at any time. */
inline clock(f, bound) { select(f : bound .. TICKS) }

/* Claim a cell: read it, and send the write. If somebody else wrote in between,
 * nothing would come of it. So reading and sending may be one step. */
inline claim_it(target) {
#ifdef M12
	select(f : 1 .. TICKS); /* the floor is the clock */
	e = MIN(MAX(f, limit[target]) + WINDOW, END);
#else
	clock(f, limit[target]);
	e = MIN(f + WINDOW, END);
#endif
	my.claim = ASKED; my.cell = target; my.floor = f; my.end = 0;
	send(target, _pid, e);
#if defined(M9_REFRESH) || defined(M9_SUCCESS)
	my.end = e;
#endif
	f = 0; e = 0
}

proctype Node() {
	byte c, f, e, i, j, k, h;
end:
	do :: atomic { if
	/* Stamp a tick. At any time, even with a claim or an extension under way, and
	 * however long after somebody else took the cell. */
	:: !my.sealed && my.node != NONE && may_stamp(_pid) ->
#ifdef ORDER
		select(f : my.word - my.open .. my.lim - 1);
		assert(f >= my.word || my.where == my.node);
		my.open = true; my.where = my.node;
#else
		select(f : my.word .. my.lim - 1);
#endif
		if
		:: my.node == 0 && f == witness ->
			check_unique(_pid);
			stamper = _pid;
			check_limit()
		:: else
		fi;
		my.word = f + 1;
#ifdef M13
		my.issued = f + 1;
#endif
		f = 0

	/* Claim a cell, any, if it has none or has lost it: it may take any for free. */
	:: !my.sealed && my.claim == IDLE && !holds(_pid) && room &&
		(time_left(0) || time_left(CELLS-1)) ->
		if
		:: time_left(0) -> c = 0
#if CELLS > 1
		:: time_left(1) -> c = 1
#endif
		fi;
		claim_it(c);
		c = 0
	/* It has the answer: yes. It may have come a while ago. */
	:: my.claim == ANSWERED -> take(my.end)
	/* The outcome is unknown, and it reads back: the record is its own. */
	:: my.claim == ASKED && record[my.cell] == _pid -> take(limit[my.cell])
	/* Reads back: the version is the old one. It tries again, with that version. */
	:: my.claim == ASKED && record[my.cell] != _pid && room && time_left(my.cell) ->
		claim_it(my.cell)
	/* Gives up, having read anything or nothing. (That it reads back and sees another's
	 * record needs no step: see apply.) */
	:: my.claim == ASKED -> disown(_pid, my.cell); no_claim(_pid)

#ifdef M9_REFRESH
	/* Takes the unknown outcome for a failure, and sends the same again with the
	 * version that the cell has now. */
	:: my.claim == ASKED && room -> send(my.cell, _pid, my.end)
#endif
#ifdef M9_SUCCESS
	/* Takes the unknown outcome for a success. */
	:: my.claim == ASKED -> take(my.end)
#endif
#ifdef M9_VERSION
	/* Reads back that the version has changed, and takes that for its own doing. */
	:: my.claim == ASKED && my.end == 1 -> take(limit[my.cell])
#endif

	/* Extend. */
	:: !my.sealed && holds(_pid) && time_left(my.node) && room ->
#ifdef LOWER
		select(f : 1 .. TICKS); /* the clock, even if it is behind the limit */
#else
		clock(f, limit[my.node]);
#endif
		e = MIN(f + WINDOW, END);
		send(my.node, _pid, e);
		f = 0; e = 0
	/* Its outcome is unknown, and it reads back: it was carried out. If not, it may
	 * try again, or leave it; and if the cell is lost, claim. */
#ifdef TOKEN
	/* (Looks at the holder only, and takes the new claim for the old extension.) */
	:: !my.sealed && my.node != NONE && record[my.node] == _pid -> my.lim = limit[my.node]
#else
	:: !my.sealed && holds(_pid) && my.lim != limit[my.node] -> my.lim = limit[my.node]
#endif
	/* Takes its cell for lost, without reason: say, an extension met a conflict, and
	 * that was an earlier one of its own. The grant remains. */
	:: !my.sealed && holds(_pid) -> disown(_pid, my.node)

	/* Seal, for good. */
	:: !my.sealed && my.node != NONE ->
		if
		:: my.claim != IDLE -> disown(_pid, my.cell); no_claim(_pid)
		:: else
		fi;
		my.sealed = true
#ifndef M11_UNSEAL
		; my.lim = 0
#endif
	/* Then release, as often as it likes, if it finds its record in the cell. */
	:: my.sealed && holds(_pid) && room ->
#ifdef M13
		e = MAX(my.issued, 1);
#else
		e = my.word;
#endif
		send(my.node, NOBODY, e);
		e = 0
#ifdef M11_EARLY
	/* Releases before it seals. */
	:: !my.sealed && holds(_pid) && room -> send(my.node, NOBODY, my.word)
#endif
#ifdef M11_UNSEAL
	/* The release timed out: goes on issuing. */
	:: my.sealed -> my.sealed = false
#endif

	/* Crash at any time, or end, and start again with no memory. */
	:: true ->
		disown(_pid, 0);
#if CELLS > 1
		disown(_pid, 1);
#endif
		restart(_pid)
	fi; tidy() } od
}

init {
	byte i;
	atomic {
		select(witness : 1 .. TICKS);
		for (i : 0 .. CELLS - 1) { limit[i] = 1 }
		for (i : 1 .. PROCS) {
			p[i].node = NONE;
#ifdef ORDER
			p[i].where = NONE;
#endif
			run Node()
		}
		i = 0;
		run Network()
	}
}
