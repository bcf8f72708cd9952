# lists.pl - a Perl program of many small values: hashes of lists, regular expressions, closures,
# strings that grow, code made at run time, sorting, interpreter threads where Perl has them.
# usage: perl lists.pl COUNT
use strict;
use warnings;
use Config;

my $seed = 12345;

sub chance {
    my ($limit) = @_;
    $seed = ($seed * 16807) % 2147483647;
    return $seed % $limit;
}

sub word { return join '', map { chr(97 + chance(26)) } 1 .. 2 + chance(12) }

my $count = shift // 20000;
my %where;
my @words = map { word() } 1 .. $count;
push @{$where{substr $words[$_], 0, 3}}, $_ for 0 .. $#words;

for my $start (sort keys %where) {
    my @places = @{$where{$start}};
    print "$start: ", scalar @places, " $places[-1]\n";
}

# Records nested three deep, copied, cut and joined again.
my %records;
for my $i (0 .. $count / 4) {
    my $word = $words[$i];
    $records{$word}{chance(9)}{text} .= "$i,";
    $records{$word}{list} = [map { {n => $_, w => $words[$_]} } 0 .. $i % 7];
    delete $records{$words[chance($i + 1)]}{list} if $i % 3 == 0;
}
for my $word (sort keys %records) {
    my $record = $records{$word};
    print join('|', $word, map {
        ref $record->{$_} eq 'HASH' ? $record->{$_}{text} : scalar @{$record->{$_}}
    } sort keys %$record), "\n";
}

# Text: a long string by substitution, split and sort.
my $text = join ' ', @words;
(my $turned = $text) =~ s/(\w)(\w+)/\u$2$1/g;
my %lengths;
$lengths{length $_}++ for split /[aeiou ]+/, $turned;
print join(',', map { "$_=$lengths{$_}" } sort { $a <=> $b } keys %lengths), "\n";
print join(' ', (sort { length $a <=> length $b or $a cmp $b } split / /, $turned)[0 .. 500]), "\n";

# Code made at run time, and closures over lists.
my @subs = map {
    my $n = $_;
    my @kept = @words[$n .. $n + 20];
    sub { join '-', $n + $_[0], @kept }
} 1 .. 300;
print $_->(1), "\n" for @subs;
for my $n (1 .. 300) {
    my $made = eval "sub { my \%h = map { \$_ => $n } \@_; join ',', sort keys \%h }" or die $@;
    print $made->(@words[$n .. $n + 5]), "\n";
}

# Threads of Perl are whole clones of the interpreter, made and freed.
if ($Config{useithreads}) {
    require threads;
    my @threads = map {
        my $n = $_;
        threads->create(sub { scalar grep { length($_) == $n } @words })
    } 1 .. 6;
    print join(' ', map { $_->join } @threads), "\n";
} else {
    print "no threads\n";
}
