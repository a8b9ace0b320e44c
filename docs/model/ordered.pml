/* Counted numbers in ordered mode: one write serves the calls of a process that began before
 * it was sent. README.md says what is modelled and what is not.
 *
 * sequence.pml shows that no number is granted twice. Here we look at the order: a call
 * returns a number above all that were returned before it began. One call is watched, in
 * every possible way. The others are not modelled: at any time a call may be there that
 * began early enough to get a number that was granted.
 */

#ifndef PROCS
#define PROCS 2
#endif
#ifndef NUMBERS
#define NUMBERS 6
#endif
#ifndef STEP
#define STEP 2    /* a write grants 1 to STEP numbers */
#endif

#define NOBODY 0  /* processes are 1..PROCS */
#define END (NUMBERS + 1)

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

byte next = 1;  /* of the cell */
byte record;    /* the process that would know the last write for its own, or NOBODY */

typedef Process {
	bool sent;     /* a write is in flight that was sent before the watched call began, */
	bool with;     /* or after: it serves the watched call, too */
	byte from, to; /* its last write that was carried out: it granted these numbers */
	bool serves;   /* the watched call, too */
	bool answer;   /* the answer is on its way */
	bool known     /* the process knows that they are its own */
};

Process p[PROCS + 1]; /* p[0] is not used */

byte high;      /* the highest number that was returned */

/* The watched call. */
byte at;        /* waits in this process, or NOBODY */
byte floor;     /* high, when it began */
byte number;    /* it gets this number, or 0 */
bool over;      /* it began, and has ended */

#define my p[_pid]

/* The process knows that the numbers of its write are its own. The watched call gets one
 * of them, if the write serves it; which one does not matter. */
inline granted() {
	my.answer = false; my.known = true;
	if
#ifdef S5
	:: at == _pid && !number ->
#else
	:: at == _pid && !number && my.serves ->
#endif
		select(n : my.from .. my.to - 1);
		assert(n > floor);
		number = n; n = 0
	:: else
	fi
}

inline give_up() {
	my.sent = false; my.with = false; my.answer = false;
	if
	:: record == _pid -> record = NOBODY
	:: else
	fi
}

proctype Node() {
	byte n, i;
end:
	do :: atomic { if
	/* The watched call begins. */
	:: at == NOBODY && !over ->
		at = _pid; floor = high;
		my.sent = my.sent || my.with; my.with = false
	/* It ends: with its number, or without one. */
	:: at == _pid -> high = MAX(high, number); at = NOBODY; floor = 0; number = 0; over = true
	/* Another call returns a number. */
	:: my.known && my.from < my.to -> high = MAX(high, my.from); my.from++
	:: my.known && my.from < my.to -> my.from++ /* Its caller has gone. */

	/* Write, for the calls that wait. Or the outcome is unknown, it reads the old version,
	 * and tries again, for all that wait now. At most one of these writes lands. */
	:: !my.answer && record != _pid && next < END ->
		if
		:: at == _pid -> my.with = true
		:: else -> my.sent = true
		fi
	/* That is carried out. The writes of others are conditional on the old version. */
	:: (my.sent || my.with) && next < END ->
		my.known = false;
		if
		:: my.sent -> my.serves = false
		:: my.with -> my.serves = true
		fi;
		my.from = next;
		select(n : next + 1 .. next + STEP);
		my.to = MIN(n, END);
		next = my.to; n = 0;
		for (i : 1 .. PROCS) { p[i].sent = false; p[i].with = false }
		i = 0;
		if
		:: true -> record = _pid; my.answer = true
		:: true -> record = _pid /* The answer is lost. */
		fi
	/* The answer comes, perhaps after writes of others. */
	:: my.answer -> if :: record == _pid -> record = NOBODY :: else fi; granted()
	/* The outcome is unknown, and it reads its own name. */
	:: record == _pid -> record = NOBODY; granted()
	/* It gives up, having read anything or nothing; or crashes. */
	:: my.sent || my.with || my.answer || record == _pid -> give_up()
	fi } od
}

init {
	byte i;
	atomic {
		for (i : 1 .. PROCS) { run Node() }
		i = 0
	}
}
