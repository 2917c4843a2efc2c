/*
 * fable_plots.h - the words, phrases and plots that fable_text.c expands; the
 * language they are written in is explained there.
 *
 * A character is h (the hero), f (the friend), e (an elder or a third one).
 */
#ifndef FABLE_PLOTS_H
#define FABLE_PLOTS_H

/* ---- Words and phrases ---- */

static const struct {
    const char *name;
    const char *text;
} rules[] = {
    { "she_name",
      "[Mila|Anna|Rosa|Ida|Clara|Hazel|Wren|Olive|Ruth|Nell|Tilda|Greta|"
      "Zoé|Renée|Poppy|Juno|Edith|Flora|Maud|Sonja|Pippa|Bess|Lotte|[Dora|"
      "Vera|[Dora|Ada|Zoë]]]" },
    { "he_name",
      "[Tom|Oskar|Felix|Hugo|Ben|Emil|Jonas|Otto|Rufus|Milo|Pip|Karl|"
      "André|Bruno|Silas|Theo|Max|Anton|Gus|Finn|Leo|Walter|Ned|[Igor|Sam|"
      "[Paul|Max|Jörg]]]" },
    { "any",
      "[fox|mouse|hedgehog|frog|squirrel|rabbit|mole|otter|badger|goat|duck|"
      "cat|sparrow|crow|donkey|goose|weaver|miller|shepherd|tailor|potter]" },
    { "elder", "[owl|tortoise|raven|stork|toad|mule|clockmaker|witch]" },
    { "fast", "[hare|fox|deer|goat|dog|pony|swallow]" },
    { "slow", "[tortoise|snail|mole|toad|hedgehog|duck|old mule]" },
    { "big", "[lion|bear|wolf|bull|stag|eagle|boar]" },
    { "small", "[mouse|wren|cricket|ant|frog|mole|beetle|rabbit]" },
    { "guard", "[troll|goose|giant|ram|dragon|swan|soldier]" },
    { "good",
      "[brave|gentle|clever|patient|honest|cheerful|quiet|curious|kind|"
      "careful|friendly|thoughtful|shy|merry]" },
    { "bad",
      "[proud|greedy|lazy|selfish|vain|hasty|grumpy|stubborn|careless]" },
    { "colour", "[red|blue|green|yellow|white|black|brown|silver|golden]" },
    { "material", "[wooden|woollen|copper|silk|glass|little|old|striped]" },
    { "thing",
      "{tint} [scarf|kite|bell|button|ring|hat|whistle|spoon|key|drum|lamp|"
      "basket|blanket|flute|ball|cup|ribbon|mirror|comb|clock]" },
    { "tint", "[{colour}|{material}]" },
    { "food",
      "[bread|cheese|honey cake|nuts|plums|soup|apple pie|berries|porridge|"
      "pears|corn|mushrooms|milk|pancakes|cold potatoes|a whole fish|salad|"
      "pudding|toast and jam]" },
    { "fruit",
      "[apples|plums|pears|nuts|cherries|carrots|cakes|eggs|figs|berries|"
      "turnips|buns]" },
    { "place",
      "[by/the river|in/the green valley|near/the old mill|on/the windy hill|"
      "at the edge of/the forest|beside/the blue lake|under/the tall oak|"
      "behind/the chapel|in/the meadow|near/the stone bridge|by/the sea|"
      "at the end of/the lane|in/the orchard|at the foot of/the mountain|"
      "inside/the ruined tower|on/the market square]" },
    { "weather",
      "[rain had fallen all night/the paths were muddy|"
      "snow had covered the fields/every roof was white|"
      "a strong wind blew from the north/the leaves flew like birds|"
      "the sun shone brightly/the stones were warm|"
      "thick fog lay on the ground/nobody could see very far|"
      "the first frost had come/the grass was stiff and grey|"
      "it was very hot/the stream was almost dry|"
      "clouds came over the hills/the air smelled of rain]" },
    { "cold",
      "[snow had covered the fields/every roof was white|"
      "a storm blew from the north/the trees groaned|"
      "the first frost had come/the grass was stiff and grey|"
      "the lake was frozen/the nights were long]" },
    { "ever",
      "[Once upon a time|Long ago|Many years ago|In a far country|"
      "Once, when the world was young|Before there were clocks|Once]" },
    { "live",
      "{ever}[,| ] [there lived @ {t} {h.k} [named|called] {h}|@ {t} {h.k} "
      "[named|called] {h} lived] {pin} {p}." },
    { "known",
      "{h} was @ {t} {h.k} who lived {pin} {p}." },
    { "intro", "[{live}|{live}|{known}]" },
    { "oneday",
      "One [day|morning|evening|afternoon|Sunday|autumn day|spring morning]" },
    { "sky",
      "[||| ^{w,we=weather}{w}, and {we}.| ^{w,we=weather}{w}.]" },
    { "scene",
      "[||||||||| A [crow|dog|bell|cock|horn] could be heard far away.| The "
      "bees were busy in the clover.| Smoke rose from the chimneys.| "
      "Somewhere a door creaked.| The moon [was already in the sky|looked down "
      "on {p}].| Nobody was on the road.| {creature}| {musing}]" },
    { "creature",
      "[^@ {small}|Two geese|An old {fast}|Some ants|^@ {colour} butterfly|"
      "A flock of starlings|^@ {bad} {elder}] [crossed|hurried along|came down|"
      "rested beside|stopped on] [the path|the road|the wall|the bank] "
      "[with @ {thing}|and was gone again|without a word|on the way to the "
      "market|looking for {food}|as if nothing had happened]." },
    { "musing",
      "{h} thought of [{h.his} {kin}|{food}|home|"
      "the [summer|winter|spring] [before|to come]] and [sighed|smiled|walked "
      "a little faster|hummed a tune|said nothing]." },
    { "said", "[said|said|answered|replied]" },
    { "kin",
      "[mother|father|grandmother|grandfather|sister|brother|aunt|uncle|"
      "cousin|teacher]" },
    { "season", "[spring|summer|autumn|winter|year]" },
    { "season2", "[summer|August|the end of summer|the next spring]" },
    { "upset", "[sad|crying|so worried|so pale|running]" },
    { "oneday2", "[one day|one evening|one Sunday|in the morning]" },
    { "sadly2", "[sadly|in a small voice|with a sigh]" },
    { "spot",
      "[under the bed|behind the stove|in the barn|on the roof|in the well|"
      "among the flowers|under every stone|in all {h.his} pockets]" },
    { "junk",
      "[an old shoe|a rusty nail|two snails|a sleeping cat|some feathers|"
      "a broken pot|a little dust]" },
    { "loss",
      "[a magpie had carried it off/high up in a nest|"
      "the wind had blown it away/in the middle of a thorn bush|"
      "it had slipped out of {h.his} bag/between two roots|"
      "the stream had washed it down/among the reeds|"
      "a puppy had played with it/under a heap of leaves|"
      "a mole had pushed it along/on top of a mound of earth|"
      "somebody had put it aside/on the lowest branch of a tree]" },
    { "ill",
      "[a fever/tea of mint leaves|a bad cough/warm milk with honey|"
      "a sore throat/an onion soup|bad dreams/a pillow of lavender|"
      "a swollen foot/a bandage of soft moss|"
      "a stomach ache/a spoon of bitter herbs]" },
    { "timid", "[timid|nervous|young|fearful]" },
    { "trap",
      "[was caught in a net/gnawed through the ropes/climbed onto the net|"
      "fell into a deep pit/let it down to {h.him}/tied a long vine to a tree|"
      "had a thorn in {h.his} foot/pulled it out/took hold of the thorn|"
      "got stuck between two rocks/dug until they moved/found a loose stone|"
      "was locked in a cage/opened the door/stole the key from a nail|"
      "sank into the swamp/pushed it within {h.his} reach/found a dry log]" },
    { "riddle",
      "[What has teeth but cannot bite/a comb|What runs but has no legs/"
      "the river|What has an eye but cannot see/a needle|What grows when it "
      "eats and dies when it drinks/a fire|What has a neck but no head/"
      "a bottle|What follows you all day and leaves you at night/your shadow|"
      "What is full of holes and still holds water/a sponge|What goes up when "
      "rain comes down/an umbrella|What speaks every language but was never "
      "at school/an echo|What is broken as soon as you say its name/silence]" },
    { "craft",
      "[boat/to cross the lake/sank at once/tar on the bottom|"
      "kite/to play in the wind/would not fly/a longer tail|"
      "bridge/to cross the stream/fell down with a splash/a pillar of stone|"
      "cart/to bring the corn home/lost a wheel/a peg of hard oak|"
      "ladder/to reach the highest apples/broke in two/rungs of ash wood|"
      "windmill/to grind the flour/did not turn/wider sails|"
      "raft/to float down the river/came apart/a stronger rope]" },
    { "noise",
      "[a tapping at the window/a branch in the wind|a long howl/the wind in "
      "the chimney|footsteps in the attic/an apple rolling on the boards|"
      "a scratching under the floor/a beetle looking for its way home|"
      "a soft voice in the garden/the owl counting the stars]" },
    { "monster", "[a ghost|a thief|a wolf|a dragon|a witch]" },
    { "sums",
      "[five/two/three|seven/three/four|six/one/five|nine/four/five|eight/"
      "two/six|four/one/three|ten/three/seven|eight/five/three|six/four/two|"
      "nine/two/seven]" },
    { "stop",
      "[lay down in the grass to sleep/was fast asleep|stopped to eat berries "
      "from a bush/was still chewing|sat down to comb {h.his} hair/was looking "
      "into a puddle|began to chase butterflies/was far from the road|"
      "stayed to tell a crow how fast {h.he} was/was still talking]" },
    { "art",
      "[sing/song|dance/dance|paint/picture|bake/cake|tell a tale/tale|"
      "play the fiddle/tune|write/poem]" },
    { "lie",
      "[The barn is burning/fire/smoke over the barn|The wolf is coming/wolf/"
      "two yellow eyes|The dam has broken/flood/water in the lane|There are "
      "thieves in the mill/thief/a man with a sack]" },
    { "seed",
      "[sunflower/as tall as the house|bean/up to the roof|pumpkin/bigger "
      "than a cart|cherry tree/full of white blossom|rose/with a hundred "
      "flowers|cabbage/so round that nobody could lift it]" },
    { "wish",
      "[a bag of gold/too heavy to carry|a crown/too tight for {h.his} head|"
      "a castle/cold and empty|a pair of wings/in the way when {h.he} slept|"
      "a golden coat/so stiff that {h.he} could not sit|"
      "a mountain of cake/stale after three days]" },
    { "guide",
      "[the north star/always stands over {p}|the smell of smoke/comes from "
      "the chimneys {pin} {p}|the sound of the bell/rings {pin} {p}|"
      "the brook/flows down to {p}|the moss on the trees/points the way]" },
    { "fault",
      "[too loud/had to hold their ears|too long/fell asleep one by one|much "
      "too proud/looked at the floor|the same as last year/yawned]" },
    { "glad",
      "[laughed|smiled|was very happy|danced for joy|could hardly speak|"
      "clapped {h.his} hands|kissed {f.him} on the nose]" },
    { "ate",
      "^they [ate|shared] {food} [until the stars came out|by the fire|"
      "together|and told old stories|and were content]" },
    { "friends",
      "[From that day on they were friends.|And they stayed friends for many "
      "years.|After that, {h} and {f} were never seen apart.|{ate}.||]" },
    { "thank",
      "[`Thank you, {f}[|, thank you]!` {said} {h}.|`How can I thank you?` "
      "asked {h}. `[It was nothing|You would do the same for me|Come and see "
      "me sometimes],` said {f}.|`You are a true friend, {f},` said {h}.]" },
};

/* ---- Plots: a hundred words each; a window holds most of a story ---- */

static const char *const plots[] = {

    /* Something is lost and found. */
    "{h*any}{f*any}{t=good}{pin,p=place}{p2in,p2=place}{o=thing}"
    "{cause,hid=loss}"
    "{intro} ^{h.he} had @ {o}[, a gift from {h.his} {kin}|, and {h.he} loved "
    "it more than anything|]. [But one day|{oneday}] it was [gone|missing|"
    "nowhere to be seen]. [`[Where is|Who has taken|I have lost] my {o}!` "
    "cried {h}. |]^{h.he} looked {spot}, but found {junk}.{scene} [Then|At "
    "last|On the road] {h.he} met {f} the {f.k}. `Why are you {upset}?` "
    "asked {f}. `I cannot find my {o},` {said} {h}. [`Where did you have it "
    "last?` `^{p2in} {p2}.` |]They went to {p2} together. [^{cause}, and t|"
    "They saw that {cause}: t|T]here it was, {hid}. [{h} {glad}.|{thank}] "
    "{friends}[||\nMoral: two pairs of eyes see more than one.]",

    /* The fast one loses the race. */
    "{h*fast}{f*slow}{t=bad}{pin,p=place}{p2in,p2=place}{s1,s2=stop}"
    "{h}, @ {t} {h.k}, [told everyone|often said] that nobody was faster. "
    "`[Let us race|I will race you] to {p2},` said {f} the {f.k}. `You are "
    "only @ {f.k}!` [cried|laughed] {h}, but {h.he} agreed.{sky} They "
    "started {pin} {p}, and {h} [shot away like an arrow|was gone in a "
    "moment|ran off laughing]. [Halfway|Near {p2}|When nobody could be seen "
    "behind], {h.he} {s1}.{scene} {f} [went on step by step|never stopped|"
    "did not hurry and did not rest]. [At sunset|An hour later|Before noon] "
    "{f.he} passed {h}, who {s2}. [`{f} has won!` they shouted {p2in} {p2}.|"
    "So {f} was first at {p2}.] [`How did you do that?` asked {h}. `I just "
    "kept going,` {said} {f}.|{h} was never so {t} again.]"
    "[||\nMoral: slow and steady wins the race.]",

    /* A sick friend. */
    "{h*any}{f*small}{t=good}{pin,p=place}{p2in,p2=place}{x,y=ill}"
    "{intro} {oneday} {h.his} friend {f} the {f.k} did not come to play. {h} "
    "[went to see {f.him}|knocked at {f.his} door]. `I have {x},` {said} {f} "
    "[weakly|from under the blanket]. {e*elder}[`Only {e} the {e.k} can "
    "help.` |So ]{h} [ran|hurried|walked] to {p2}, where {e}[ the {e.k}|] "
    "lived.{sky}{scene} `[Please|Help me], {e}, {f} has {x},` said {h}. `Then "
    "{f.he} needs {y},` {said} {e}, `but first [sweep my floor|bring me some "
    "wood|tell me a story|bring me {food}].` {h} did so. [It was dark when "
    "{h} came back|{h} ran all the way home] with {y}. [In three days|By the "
    "next morning|After a long sleep] {f} was well again. [They sent {e} a "
    "basket of {fruit}.|{ate}.|`Thank you, {h},` {said} {f}.]",

    /* The small one frees the big one. */
    "{h*big}{f*small}{t=bad}{pin,p=place}{tr1,tr2,tr3=trap}"
    "{intro} {oneday} {h} caught {f}, @ {t2=good}{t2} {f.k}. `[Please|Oh "
    "please], let me go,` begged {f}. `[One day I will help you|I am too "
    "small to eat|My {kin} is waiting for me].` {h} [laughed|yawned|thought "
    "about it] and let {f.him} go.{sky} [Not long after|A week later|In the "
    "same month] {h} {tr1}. ^{h.he} [roared|called for help|shouted], and "
    "[only {f} heard it|{f} came running].{scene} `[Hold still|Be quiet|"
    "Wait], {h}[, I have not forgotten you|],` said {f}. ^{f.he} {tr3} and "
    "{tr2}. [Soon {h} was free.|`I laughed at you,` said {h}, `and I was "
    "wrong.`|{thank}] {friends}"
    "[||\nMoral: nobody is too small to help.]",

    /* A riddle opens the way. */
    "{h*any}{e*guard}{t=good}{pin,p=place}{p2in,p2=place}{q,a=riddle}"
    "{q2,a2=riddle}"
    "{intro} {oneday} {h.he} [wanted to visit|had to bring {food} to] {h.his} "
    "{kin} {p2in} {p2}.{sky} On the way stood {e}, @ [huge|grim|tired|very "
    "old] {e.k}. `Nobody passes without an answer,` said {e}. `{q}?` {h} "
    "[thought for a while|sat down on a stone|scratched {h.his} head]."
    "{scene} [`Is it {a2}?` `No.` |]`It is {a}!` {h.he} [cried|said at last]. "
    "`[Right|Well done|That is true],` {said} {e}, `[you may pass|go on to "
    "{p2}].` [`May I ask you something too?` said {h}. `{q2}?` {e} did not "
    "know it. `It is {a2},` said {h}.|{h} thanked {e.him} and went on.|{h} "
    "gave {e} some {food}.] [|So {h} came to {p2}.]",

    /* One thing is traded for another. */
    "{h*any}{f*any}{e*elder}{t=good}{pin,p=place}{p2in,p2=place}"
    "{o1=thing}{o2=thing}{o3=thing}"
    "{intro} ^{h.he} wanted @ {o3} for {h.his} {kin}, but had only @ {o1}. "
    "{oneday} {h.he} met {f} the {f.k} {p2in} {p2}, who carried @ {o2}. "
    "`[Give me your|I need @] {o1},` said {f}, `and take my {o2}.` {h} "
    "[agreed|thought about it and said yes].{scene} [Later|Behind the next "
    "hill|On the way home] {h.he} saw @ {o3} at the house of {e}, an old "
    "{e.k}. `[Will you give it to me for this {o2}|May I pay with this {o2}]?` "
    "asked {h}. `[That is just what I need|It is a fair trade],` {said} {e}. "
    "So {f} had the {o1}, {e} had the {o2}, and {h} took the {o3} home. "
    "[|^{h.his} {kin} was very pleased.]",

    /* Sharing, counted out. */
    "{h*any}{f*any}{t=good}{pin,p=place}{u=fruit}{n,m,l=sums}"
    "{intro} {oneday} {h.he} [found|picked|bought] {n} {u}.{sky} On the road "
    "{h.he} met {f} the {f.k}, who [was hungry|had eaten nothing all day|"
    "looked very thin]. `[What have you got there|What is in your basket], "
    "{h}?` asked {f}. `^{n} {u},` {said} {h}. [{h} smiled and|{h} thought "
    "of the winter, but|So {h}] gave {f} {m} of them "
    "and kept {l}.{scene} [In the winter|In December|Some months later], when "
    "{w,we=cold}{w}, {h} had nothing to eat. [There was a knock at the door|"
    "Somebody called from the garden]: it was {f}. `You gave me {m} {u},` "
    "{f.he} said, `and now [I bring you {food}|my house is yours].` {h} "
    "{glad}. {friends}[||\nMoral: what you give away comes back.]",

    /* A thing is built, breaks, and is built better. */
    "{h*any}{f*any}{t=good}{pin,p=place}{c,use,fail,fix=craft}"
    "{intro} {h} [wanted|decided] to build @ {c} {use}. ^{h.he} worked [all "
    "day|for a week|from morning to night].{sky} But the {c} {fail}. [`I "
    "shall never learn it,` said {h} {sadly2}. |{h} kicked a stone. |]{f} the "
    "{f.k} [came by|had watched it all|looked over the fence].{scene} `Your "
    "{c} needs {fix},` said {f}. [`Will you help me?` `Gladly.` |]They "
    "[worked together|took it apart|began again], and {h} gave the {c} {fix}. "
    "Now it was [as good as new|better than before|just right], and they used "
    "it {use}. [{thank} |]{friends}[||\nMoral: four hands build better than "
    "two.]",

    /* A noise in the night. */
    "{h*any}{f*any}{t=timid}{pin,p=place}{z1,z2=noise}{g=monster}"
    "{intro} One night, when {w,we=weather}{w}, {h} heard {z1}. `It is {g}!` "
    "[thought|whispered] {h}, and {h.he} [hid under the blanket|held {h.his} "
    "breath|crept behind the stove].{scene} There it was again: {z1}. {h} ran "
    "to {f} the {f.k}, who lived next door. `Wake up, {f}! There is {g} in my "
    "house!` {f} took [a lantern|a candle|a big stick|@ {thing}], and they "
    "went in together. They looked {spot}. Then {f} began to laugh. `It is "
    "only {z2},` said {f.he}. {h} [blushed|laughed too|had to sit down]. [`I "
    "thought it was {g},` said {h}.|`In the dark all things are big,` said "
    "{f}.|{friends}][||\nMoral: look before you are afraid.]",

    /* Two quarrel, a third one judges. */
    "{h*any}{f*any}{e*elder}{pin,p=place}{o=thing}"
    "{h} the {h.k} and {f} the {f.k} found @ {o} {pin} {p}. `I saw it first!` "
    "cried {h}. `But I picked it up!` {said} {f}. They [argued|quarrelled|"
    "shouted] until [the birds flew away|their ears hurt|it was dark].{scene} "
    "[At last|The next day] they went to {e}, @ {t2=good}{t2} old {e.k}. "
    "`Whose {o} is it?` they asked. `I will [break it in two|cut it into two "
    "pieces],` {said} {e}. `[Good|So be it],` said {f}. `No! [Do not spoil it"
    "|Let {f} have it],` cried {h}. Then {e} [smiled|nodded] and gave the "
    "{o} to {h}. [{f} was ashamed.|{h} let {f} use the {o} every Sunday.|]"
    "[||\nMoral: who truly loves a thing will not break it.]",

    /* The contest. */
    "{h*any}{f*any}{e*elder}{t=bad}{pin,p=place}{p2in,p2=place}{v,n=art}"
    "{o=thing}{k1,k2=fault}"
    "Every {season} there was a feast {pin} {p}, and whoever could {v} best "
    "won @ {o}. `[It will be mine again|The {o} is mine already],` said {h}, "
    "@ {t} {h.k}. {f}, @ {t2=good}{t2} {f.k}, [said nothing|had never tried "
    "before].{sky} {e} the {e.k} was the judge. First came {h}. ^{h.his} {n} "
    "was {k1}, and the others {k2}.{scene} Then came {f}. It was a small {n} "
    "about [{p2}|an old friend|the first day of {season}|{food}|@ {thing}], "
    "and [nobody moved|everybody listened|some had tears in their eyes]. `The "
    "{o} goes to {f},` said {e}. [{h} went away angry.|`Will you teach me?` "
    "asked {h}.][||\nMoral: the loudest is not the best.]",

    /* The one who cried wolf. */
    "{h*any}{f*any}{t=bad}{pin,p=place}{l1,l2,l3=lie}"
    "{intro} {oneday} {h.he} was bored and [cried|shouted]: `{l1}!` Everybody "
    "came running, {f} the {f.k} first of all. But there was no {l2}, and {h} "
    "laughed. `That was not [funny|kind], {h},` {said} {f}. The next [day|"
    "week] {h.he} did it again, and again there was no {l2}.{sky}{scene} "
    "Then, one night, {h} saw {l3}. `{l1}!` {h.he} [screamed|called]. [Nobody "
    "came|They only shut their windows]. [Only {f} [got up|opened the door], "
    "and together they [saved what could be saved|woke the others]. `I will "
    "never lie again,` said {h}.|`Why did you not come?` {h} asked in the "
    "morning. `Because you lied to us,` {said} {f}.]"
    "[||\nMoral: a liar is not believed even when the truth is told.]",

    /* Summer's work, winter's bread. */
    "{h*any}{f*small}{t=bad}{pin,p=place}{u=fruit}"
    "{intro} All summer {h.he} [lay in the sun|played the fiddle|slept under "
    "a tree], while {f} the {f.k} gathered {u}. [`Why do you work so hard, "
    "{f}?` asked|`Come and play with me, {f}!` called] {h}. `[Winter will "
    "come|I shall be glad of my {u}],` {said} {f}.{scene} But the days grew "
    "short. {oneday} {w,we=cold}{w}, and {we}. {h} looked {spot}, but found "
    "{junk}. Hungry, {h.he} knocked at the door of {f}. [`What did you do all "
    "summer?` asked {f}. `I [played|slept],` said {h} {sadly2}. `|`]Come in,` "
    "said {f}, `there are {u} for two.` [The next summer they gathered {u} "
    "together.|`Next year I will help you,` said {h}.]"
    "[||\nMoral: work while the sun shines.]",

    /* A door that stays shut. */
    "{h*any}{f*any}{e*any}{t=bad}{pin,p=place}{d=food}"
    "{intro} One night {w,we=cold}{w}. There was a knock at the door. `Who is "
    "there?` asked {h}. `{f} the {f.k}. [I have lost my way|I am cold and wet|"
    "May I sit by your fire]!` `[There is no room|I have only one chair|Go "
    "away],` {said} {h}. So {f} went on to the house of {e}, @ {t2=good}{t2} "
    "{e.k}, who gave {f.him} {d}.{scene} [Not a month later|Before the winter "
    "was over] a storm took the roof off {h.his} house. ^{h.he} came to a "
    "[little|new] door. It opened, and there stood {f}. `You sent me away,` "
    "said {f}, `but {e} gave me {d}. Come in.` And {h} had {d}, too."
    "[||\nMoral: keep your door open, for you may stand outside one day.]",

    /* A seed and patience. */
    "{h*any}{f*any}{e*elder}{t=good}{t2=bad}{pin,p=place}{c,how=seed}"
    "{e}, an old {e.k}, gave {h} and {f} one {c} seed each. {h} was @ {t} "
    "{h.k}, and {f} was @ {t2} {f.k}. {h} [planted {h.his} seed|put {h.his} "
    "seed into the ground] {pin} {p}. {f} dug {f.his} seed up again each "
    "morning. `[Why does it not grow|Is it growing yet]?` {f.he} asked. `[You "
    "must wait|Leave it in the ground], {f},` {said} {h}.{sky}{scene} A week "
    "went by. `Mine is [dead|a bad seed]!` cried {f} and threw it [away|over "
    "the wall]. But {h} waited, and by {season2} the {c} was {how}. [`How did "
    "you do it?` asked {f}. `I waited,` {said} {h}.|{h} gave {f} a new seed, "
    "and this time {f} waited.][||\nMoral: patience makes things grow.]",

    /* Three wishes. */
    "{h*any}{e*guard}{t=bad}{pin,p=place}{x1,y1=wish}{x2,y2=wish}"
    "{intro} {oneday} {h} [pulled @ {e.k} out of the mud|opened an old bottle, "
    "and out came @ {e.k}|let @ {e.k} drink from {h.his} well]. `I am {e},` "
    "said the {e.k}, `and you have three wishes.` `I wish for {x1}!` {h} "
    "cried. At once it was there. But it was {y1}.{scene} `I wish for {x2} "
    "instead!` And there was {x2}, but [this time|now] it was {y2}. `First "
    "{x1} and then {x2},` {said} {e}. `What is your last wish?` {h} thought "
    "[all night|for a long time]. `[Take it all away|I wish that all were as "
    "before],` {h.he} said. ^then {h.he} went home, ate {food}, and slept "
    "well.[||\nMoral: who has enough needs no wishes.]",

    /* The way home. */
    "{h*any}{f*small}{t=good}{pin,p=place}{p2in,p2=place}{x,y=guide}"
    "{h}, @ {t} {h.k}, found a [young|little] {f.k} crying {p2in} {p2}. `What "
    "is your name?` asked {h}. `{f},` {said} the little one, `and I cannot "
    "find my way home.` `Where do you live, {f}?` `^{pin} {p}[|, but it is so "
    "dark|, but all the paths look the same].`{sky} `[Do not cry|Dry your "
    "tears],` said {h}. `Look for {x}: it {y}.` They walked [for hours|"
    "through the night|up and down], and {h} told {f} [about {h.his} {kin}|a "
    "story about @ {thing}].{scene} At last they came to {p}. `{f}! Where "
    "have you been?` cried {f.his} {kin}. `^{p2in} {p2},` said {f}, `and {h} "
    "brought me home.` [^they gave {h} {food}.|And {f} never forgot to look "
    "for {x}.]",

    /* A secret is kept. */
    "{h*any}{f*any}{e*any}{t=good}{pin,p=place}{p2in,p2=place}{o=thing}"
    "`Can you keep a secret?` {f} the {f.k} asked {oneday2}. {h}, @ {t} {h.k}, "
    "nodded. `I have hidden @ {o} {p2in} {p2}. It is for {e} the {e.k}, "
    "because {e.he} [will soon be a year older|was so sad last week|once "
    "helped me].`{sky} [Later|The next day|That very evening] {h} met {e} "
    "{pin} {p}. `[Does {f} not like me any more|Why does {f} hide from me]?` "
    "asked {e} {sadly2}. {h} [bit {h.his} tongue|wanted to tell {e.him}|looked "
    "away], but {h.he} only said: `Wait until Sunday.`{scene} On Sunday {f} "
    "and {h} fetched the {o} from {p2}. `This is for you, {e}!` said {f}. "
    "{e} [laughed|wept for joy|could not say a word]. [`So that was your "
    "secret,` {e.he} said to {h}.|`It was hard to keep,` said {h}.]",
};

#endif
