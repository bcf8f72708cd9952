<?php
// What PHP's extensions do with memory that libraries and the interpreter hand to each other:
// documents of libxml2 (DOM, SimpleXML), tables of SQLite (PDO), regular expressions, JSON.
// Usage: objects.php NUMBER

$number = (int)$argv[1];
mt_srand(1);

function check($true, $what)
{
    if (!$true) {
        echo "not as expected: $what\n";
        exit(1);
    }
}

function make_document($entries)
{
    $document = new DOMDocument('1.0', 'UTF-8');
    $root = $document->appendChild($document->createElement('entries'));
    for ($i = 0; $i < $entries; $i++) {
        $entry = $root->appendChild($document->createElement('entry'));
        $entry->setAttribute('id', "e$i");
        $entry->setAttribute('weight', (string)mt_rand(1, 1000));
        $text = str_repeat(chr(97 + $i % 26), mt_rand(1, 200));
        $entry->appendChild($document->createTextNode("<$text> & \u{e9}"));
        if ($i % 7 == 0) {
            $entry->appendChild($document->createCDATASection("<$text>"));
        }
    }
    return $document;
}

function query_document($document)
{
    $path = new DOMXPath($document);
    $heavy = $path->query('//entry[@weight > 900]');
    echo $heavy->length, ' of ', $path->evaluate('count(//entry)'), " are heavy\n";
    foreach ($heavy as $entry) {
        echo $entry->getAttribute('id'), ' ', strlen($entry->textContent), "\n";
        $entry->parentNode->removeChild($entry);
    }
    $document->formatOutput = true;
    return $document->saveXML();
}

function read_again($xml)
{
    libxml_use_internal_errors(true);
    check(@simplexml_load_string(substr($xml, 0, -20)) === false, 'half a document');
    foreach (libxml_get_errors() as $error) {
        echo trim($error->message), "\n";
    }
    libxml_clear_errors();
    $sum = 0;
    foreach (simplexml_load_string($xml)->entry as $entry) {
        $sum += (int)$entry['weight'] * strlen((string)$entry);
    }
    echo "sum $sum\n";
}

function fill_table($rows)
{
    $base = new PDO('sqlite::memory:');
    $base->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
    $base->exec('create table words (id integer primary key, word text, weight real, data blob)');
    $base->sqliteCreateFunction('turned', 'strrev', 1);
    $base->beginTransaction();
    $insert = $base->prepare('insert into words (word, weight, data) values (?, ?, ?)');
    for ($i = 0; $i < $rows; $i++) {
        $word = substr(md5((string)$i), 0, mt_rand(1, 32));
        $insert->execute([$word, mt_rand(0, 1000) / 8, str_repeat($word, mt_rand(0, 50))]);
    }
    $base->commit();
    try {
        $base->exec('insert into nowhere values (1)');
    } catch (PDOException $error) {
        echo $error->getMessage(), "\n";
    }
    return $base;
}

function query_table($base)
{
    $base->exec('create index by_word on words (word)');
    $query = 'select substr(word, 1, 1) as first, count(*) as rows, sum(weight) as weight,
              max(turned(word)) as last, sum(length(data)) as bytes
              from words group by first order by first';
    foreach ($base->query($query, PDO::FETCH_ASSOC) as $row) {
        echo json_encode($row), "\n";
    }
    return $base->query('select word, weight from words order by word, id')->fetchAll(PDO::FETCH_OBJ);
}

function match_words($words)
{
    $text = json_encode($words, JSON_PRETTY_PRINT);
    check(json_decode($text) == $words, 'what was encoded is decoded');
    $found = preg_match_all('/"word": "(?<word>(?:[a-f]\d)+[a-f]?)"/', $text, $matches);
    echo "$found match: ", md5(implode(',', $matches['word'])), "\n";
    $changed = preg_replace_callback('/(\d+)\.(\d+)/u', fn ($m) => $m[2] . ',' . $m[1], $text);
    echo md5($changed), ' ', count(preg_split('/\s*[{},]\s*/', $changed)), "\n";
    return $changed;
}

check((opcache_get_status(false)['opcache_enabled'] ?? false) === true, 'opcache is on');
$xml = query_document(make_document($number));
file_put_contents('document.xml', $xml);
read_again($xml);
file_put_contents('words.txt', match_words(query_table(fill_table($number * 5))));
// Code that is compiled, kept by opcache, and run.
for ($i = 0; $i < 20; $i++) {
    $code = "<?php class Part$i { public \$n = $i; function twice() { return \$this->n * 2; } }\n";
    $code .= str_repeat("\$list[] = ['name' => 'part$i', 'text' => \"\$i of \$number\"];\n", 50);
    file_put_contents("part$i.php", $code);
    require "./part$i.php";
    $class = "Part$i";
    echo (new $class())->twice(), ' ';
}
echo "\n", count($list), ' ', md5(serialize($list)), "\n";
