package snowflake

import "time"

// preset is a layout whose epoch is so many milliseconds after 1970.
func preset(name string, epoch int64, tick time.Duration, timeBits, nodeBits, sequenceBits int, parts ...Part) Layout {
	return Layout{
		Name: name, Epoch: time.UnixMilli(epoch).UTC(), Tick: tick,
		TimeBits: timeBits, NodeBits: nodeBits, SequenceBits: sequenceBits, Parts: parts,
	}
}

// Default returns the layout of a generator without another: 41 bits of 1ms from 2025-01-01T00:00:00Z, until 2094-09-07T15:47:35.552Z; 10 bits for
// 1024 nodes; 12 bits for 4096 IDs per node and millisecond. Its widths are
// Twitter's, so tools for those work; its epoch is recent, so that its 69.7 years are
// all ahead. Its name is "tickflake".
func Default() Layout {
	return preset("tickflake", 1735689600000, time.Millisecond, 41, 10, 12)
}

// Twitter returns the layout of Twitter's (X's) IDs: 41 bits of 1ms from
// 2010-11-04T01:42:54.657Z, until 2080-07-10T17:30:30.209Z; 5 bits datacenter,
// 5 bits worker; 12 bits sequence. Twitter's own IDs from before that November were a plain counter: those below
// 30,000,000,000 decode to the first seconds after the epoch, which tell nothing. Source: IdWorker.scala in
// twitter-archive/snowflake.
func Twitter() Layout {
	return preset("twitter", 1288834974657, time.Millisecond, 41, 10, 12, Part{"datacenter", 5}, Part{"worker", 5})
}

// Discord returns the layout of Discord's IDs: 41 bits of 1ms from
// 2015-01-01T00:00:00Z, until 2084-09-06T15:47:35.552Z; 5 bits worker, 5 bits
// process; 12 bits sequence, which Discord calls increment. Discord documents 42
// bits of time, 64 bits in all. The highest would be the sign here, and stays 0
// until that same day in 2084, so all IDs until then decode alike. Source:
// "Snowflakes" in Discord's API reference.
func Discord() Layout {
	return preset("discord", 1420070400000, time.Millisecond, 41, 10, 12, Part{"worker", 5}, Part{"process", 5})
}

// Instagram returns the layout of Instagram's IDs: 40 bits of 1ms from
// 2011-08-24T21:07:01.721Z, until 2046-06-27T17:00:49.497Z; 13 bits shard; 10
// bits sequence. Instagram describes 41 bits of time, 64 bits in all. The highest
// would be the sign here, and stays 0 until that same day in 2046, so all
// IDs until then decode alike. Source: "Sharding & IDs at Instagram" on
// Instagram's engineering blog.
func Instagram() Layout {
	return preset("instagram", 1314220021721, time.Millisecond, 40, 13, 10, Part{"shard", 13})
}

// Sonyflake returns the default layout of version 2 of sony/sonyflake: 39 bits
// of 10ms from 2025-01-01T00:00:00Z, until 2199-03-19T03:28:58.880Z; 8 bits
// sequence; 16 bits machine, in that order. Source: v2/sonyflake.go.
func Sonyflake() Layout {
	l := preset("sonyflake", 1735689600000, 10*time.Millisecond, 39, 16, 8, Part{"machine", 16})
	l.Order = TimeSequenceNode
	return l
}

// SonyflakeV1 returns the layout of version 1 of sony/sonyflake, which differs
// from [Sonyflake] in the epoch alone: 2014-09-01T00:00:00Z, until
// 2188-11-16T03:28:58.880Z. An ID does not tell which version made it. Source:
// sonyflake.go.
func SonyflakeV1() Layout {
	l := Sonyflake()
	l.Name = "sonyflake-v1"
	l.Epoch = time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC)
	return l
}

// Leaf returns the layout of the Snowflake mode of Meituan-Dianping/Leaf:
// Twitter's widths and epoch, with all 10 node bits for one worker number.
// Source: SnowflakeIDGenImpl.java.
func Leaf() Layout {
	return preset("leaf", 1288834974657, time.Millisecond, 41, 10, 12, Part{"worker", 10})
}

// Baidu returns the default layout of baidu/uid-generator: 28 bits of 1s from
// 2016-05-19T16:00:00Z (midnight of the 20th in China), 22 bits worker, 13 bits
// sequence. Source: DefaultUidGenerator.java.
//
// Its time field ended at 2024-11-20T13:24:16Z, so it serves to decode old IDs,
// and a generator refuses it. To issue IDs of these widths give it a new epoch, as in
// ParseLayout("baidu,epoch=2026-01-01"). The new IDs do not sort after the old ones and
// can repeat them, so use a new table.
//
// Users of uid-generator can set epoch and widths; it reads the epoch in its host's time
// zone. The IDs of such an installation need a layout to match.
func Baidu() Layout {
	return preset("baidu", 1463673600000, time.Second, 28, 22, 13, Part{"worker", 22})
}

// EasySwoole returns the layout of the SnowFlake class of EasySwoole's core
// (2017): 41 bits of 1ms from 2017-10-25T15:24:52Z, until
// 2087-07-02T07:12:27.552Z; 5 bits datacenter, 5 bits worker; 12 bits sequence.
// Source: src/Core/Utility/SnowFlake.php in easy-swoole/easyswoole.
//
// Later versions of easy-swoole/utility are different: they take worker numbers
// up to 127, shifted by 10 bits, and sequences up to 2047, so that the highest
// sequence bit and the lowest worker bit share a place and no layout separates
// them.
func EasySwoole() Layout {
	return preset("easyswoole", 1508945092000, time.Millisecond, 41, 10, 12, Part{"datacenter", 5}, Part{"worker", 5})
}

// JavaScript returns a layout of 53 bits, so that every ID survives as a
// JavaScript number (up to 2^53-1, Number.MAX_SAFE_INTEGER), as a float64 and in
// spreadsheets that keep float64: 38 bits of 10ms from 2025-01-01T00:00:00Z,
// until 2112-02-09T13:44:29.440Z; 7 bits for 128 nodes; 8 bits for 256 IDs per
// node and tick, which is 25,600 per second. Spreadsheets that keep only 15
// digits need the IDs as text all the same.
func JavaScript() Layout {
	return preset("javascript", 1735689600000, 10*time.Millisecond, 38, 7, 8)
}

// Presets returns all presets, the default layout first, in an order that does
// not change. The caller may modify the slice and the layouts.
func Presets() []Layout {
	return []Layout{
		Default(), Twitter(), Discord(), Instagram(), Sonyflake(), SonyflakeV1(),
		Leaf(), Baidu(), EasySwoole(), JavaScript(),
	}
}

// Preset returns the preset of that name, in lower case: tickflake, twitter,
// discord, instagram, sonyflake, sonyflake-v1, leaf, baidu, easyswoole or
// javascript. It reports whether there is one.
func Preset(name string) (Layout, bool) {
	for _, l := range Presets() {
		if l.Name == name {
			return l, true
		}
	}
	return Layout{}, false
}
