<?php
// Runs phpredis for a test: reads one JSON request per line, does it, and writes one JSON
// answer per line.

function describe($value)
{
    if ($value instanceof Exception) {
        return ['type' => 'error', 'class' => get_class($value), 'text' => $value->getMessage()];
    }
    if (is_array($value)) {
        return ['type' => 'array', 'items' => array_map('describe', $value)];
    }
    return ['type' => $value === null ? 'null' : gettype($value), 'text' => is_bool($value) ? json_encode($value) : (string) $value];
}

// checked throws the error of the last answer: phpredis returns false for it.
function checked(Redis $client, $value)
{
    $error = $client->getLastError();
    if ($error !== null) {
        $client->clearLastError();
        throw new RedisException($error);
    }
    return $value;
}

$client = null;
$handlers = [
    'connect' => function ($r) use (&$client) {
        $client = new Redis();
        if (isset($r['ca'])) {
            $client->connect('tls://127.0.0.1', $r['port'], 0, null, 0, 0, ['stream' => ['cafile' => $r['ca']]]);
        } else {
            $client->connect('127.0.0.1', $r['port']);
        }
        if (isset($r['user'])) {
            return checked($client, $client->auth([$r['user'], $r['password']]));
        }
        if (isset($r['password'])) {
            return checked($client, $client->auth($r['password']));
        }
        return checked($client, $client->ping());
    },
    'call' => function ($r) use (&$client) {
        return checked($client, $client->rawCommand(...$r['args']));
    },
    'method' => function ($r) use (&$client) {
        $args = $r['args'];
        $name = array_shift($args);
        return checked($client, $client->$name(...$args));
    },
    'pipeline' => function ($r) use (&$client) {
        $pipe = $client->pipeline();
        foreach ($r['commands'] as $args) {
            $pipe->rawCommand(...$args);
        }
        $answers = $pipe->exec();
        $client->clearLastError(); // of a command in the pipeline
        return $answers;
    },
    'cluster' => function ($r) {
        new RedisCluster(null, ['127.0.0.1:' . $r['port']]);
    },
];

while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true);
    try {
        $answer = describe($handlers[$request['do']]($request));
    } catch (Exception $error) {
        $answer = describe($error);
    }
    echo json_encode($answer), "\n";
}
